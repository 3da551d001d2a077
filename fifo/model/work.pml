/*
 * The bounded work FIFO (../work.go, ../ledger.go) in Promela: two callers, of
 * which one has a launch larger than the ring, the carrier, an end of the Guard
 * and Close at any time. Each atomic block is a critical section.
 *
 *	spin -run -DSAFETY work.pml             no assertion fails, no deadlock
 *	spin -DCAP=1 -run -DSAFETY work.pml     nor with the smallest ring
 *	spin -DFAULT -run -DSAFETY work.pml     must fail: a wake-up is lost
 */
#ifndef CAP
#define CAP 2
#endif
#define ITEMS 5

byte produced, taken, consumed;
bool closed, ended, inItem[ITEMS], carried[ITEMS], finished[ITEMS];
byte ring[CAP];

bool parkedRoom[2], parkedDone[2], parkedWork;

#define full (produced - consumed == CAP)

#define wake(c) c[0] = false; c[1] = false

/* The launches of the items first … first+n-1: PushSome and Token.Wait until
 * all are in, or one call fails. */
inline launches(me, first, n) {
	refused = false;
	i = 0;
	do
	:: refused || i == n -> break
	:: else ->
		atomic { !parkedRoom[me] ->	/* PushSome */
			if
			:: closed || (full && ended) -> refused = true
			:: !closed && full && !ended -> parkedRoom[me] = true
			:: !closed && !full ->
				do
				:: i == n || full -> break
				:: else ->
					assert(!inItem[first+i]);
					assert(i == 0 || inItem[first+i-1]);
					inItem[first+i] = true;
					ring[produced % CAP] = first+i;
					produced++;
					assert(produced - consumed <= CAP);
					parkedWork = false;
					i++
				od;
				wait = true
			fi };
		do	/* Token.Wait */
		:: !wait -> break
		:: atomic { wait && !parkedDone[me] ->
			if
			:: ended || finished[first+i-1] -> wait = false
			:: else -> parkedDone[me] = true
			fi }
		od
	od
}

proctype Group() {
	byte i; bool refused, wait;
	launches(0, 0, 3)
}

proctype Singles() {
	byte i; bool refused, wait;
	launches(1, 3, 1);
	launches(1, 4, 1)
}

proctype Carrier() {
	do
	:: atomic { !parkedWork ->
		if
		:: taken < produced ->
			assert(!carried[ring[taken % CAP]]);
			carried[ring[taken % CAP]] = true;
			taken++
		:: taken == produced && closed && consumed == taken -> break
		:: taken == produced && !closed && consumed == taken -> parkedWork = true
		:: else
		fi }
	:: atomic { !parkedWork && consumed < taken ->
		assert(carried[ring[consumed % CAP]]);
		finished[ring[consumed % CAP]] = true;
		consumed++;
#ifndef FAULT
		wake(parkedRoom);
#endif
		wake(parkedDone) }
	od
}

/* The Guard ends, and a tick makes everyone look. */
proctype End() {
	if
	:: true
	:: atomic { ended = true; wake(parkedRoom); wake(parkedDone) }
	fi
}

init {
	atomic { run Carrier(); run End(); run Group(); run Singles() }
	/* Close comes at any time, or when the callers have finished. */
	bool early;
	if
	:: early = true
	:: early = false
	fi;
	early || _nr_pr <= 3;
	atomic { closed = true; wake(parkedRoom); parkedWork = false }
	_nr_pr == 1;
	assert(produced == consumed && consumed == taken);
	byte k;
	for (k : 0 .. ITEMS-1) {
		assert(inItem[k] == carried[k] && carried[k] == finished[k])
	}
}
