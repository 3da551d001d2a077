/*
 * The bounded queue of work (../work.go) in Promela: three callers, the carrier, an end
 * and a new beginning of the Guard, and Close at any time. Each atomic block is a critical section.
 * scripts/model checks that no run fails, with the smallest ring too, and that one
 * does with each FAULT below.
 */
#ifndef CAP
#define CAP 2
#endif
#define ITEMS 5

byte produced, taken, consumed;
bool closed, ended, inItem[ITEMS], carried[ITEMS];
byte ring[CAP];

bool parkedRoom[3], parkedWork;

#ifdef FAULT_ROOM_BY_TAKING
#define full (produced - taken == CAP)
#else
#define full (produced - consumed == CAP)
#endif

#define wake(c) c[0] = false; c[1] = false; c[2] = false

proctype Caller(byte me, first, n) {
	byte i;
	do
	:: i == n -> break
	:: atomic { i < n && !parkedRoom[me] ->	/* Push */
		if
		:: closed || (full && ended) -> i = n
		:: !closed && full && !ended -> parkedRoom[me] = true
		:: !closed && !full ->
			assert(!inItem[first+i]);
			inItem[first+i] = true;
			ring[produced % CAP] = first+i;
			produced++;
			assert(produced - consumed <= CAP);
#ifndef FAULT_PUSH_WAKES_NOBODY
			parkedWork = false;
#endif
			i++
		fi }
	od
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
		consumed++;
#ifndef FAULT_DONE_WAKES_NOBODY
		wake(parkedRoom)
#endif
		}
	od
}

/* The Guard ends, and a tick makes everyone look. */
proctype End() {
	if
	:: true
	:: atomic { ended = true; wake(parkedRoom) };
		if
		:: true
		:: ended = false	/* the next operation has a deadline of its own */
		fi
	fi
}

init {
	atomic { run Carrier(); run End(); run Caller(0, 0, 2); run Caller(1, 2, 2); run Caller(2, 4, 1) }
	/* Close comes at any time, or when the callers have finished. */
	bool early;
	if
	:: early = true
	:: early = false
	fi;
	early || _nr_pr <= 3;
	atomic {
		closed = true;
#ifndef FAULT_CLOSE_WAKES_NOBODY
		parkedWork = false;
#endif
		wake(parkedRoom)
	}
	_nr_pr == 1;
	assert(produced == consumed && consumed == taken);
	byte k;
	for (k : 0 .. ITEMS-1) {
		assert(inItem[k] == carried[k])
	}
}
