/*
 * The bounded queue of work for a device (../space.go) in Promela: a host that
 * launches, captures, replays, destroys and closes, the device, and an abort. A byte
 * of the ring is a cell that holds the number of its launch. scripts/model checks that
 * no run fails, with the smallest rings too, and that one does with each FAULT below.
 */
#ifndef CAP
#define CAP 3
#endif
#define CALLS 4

byte produced, consumed, last;	/* the host's; last is the last token that is due */
byte word;			/* the device stores tokens here */
byte stage[CAP], memory[CAP];	/* the ring, on the host and on the device */
byte storage, replays;		/* the graph's own memory; how often it is queued */
bool captured, dead;		/* there is a graph; its user has destroyed it */
byte owner;			/* the launch that the graph has captured */
bool alone;			/* peers never come */
bool aborted, gone, quit;	/* gone: Close has given all back */

mtype = { copy, kernel, replay };
chan queue = [6] of { mtype, byte, byte, byte, byte };	/* launch, place, size, token */

#define over (aborted || gone)

#ifdef FAULT_OVER_READS
#define reads true
#else
#define reads (!over)
#endif

#ifdef FAULT_RESERVATION_WRAPS
#define start produced
#else
#define start (produced % CAP + n > CAP -> produced - produced % CAP + CAP : produced)
#endif

#ifdef FAULT_SKIPPED_DOES_NOT_COUNT
#define room (produced - consumed + n <= CAP)
#elif defined(FAULT_EMPTY_RING_SKIPS_NOTHING)
#define room (start + n - consumed <= CAP)
#elif defined(FAULT_ROOM_IS_ONE_MORE)
#define room (produced == consumed || start + n - consumed <= CAP + 1)
#else
#define room (produced == consumed || start + n - consumed <= CAP)
#endif

inline free() {
	if
	:: dead && replays == 0 -> storage = 0; captured = false; dead = false
	:: else
	fi
}

proctype Device() {
	mtype what;
	byte id, at, n, token, i;
	do
	:: atomic { quit && empty(queue) -> break }
#ifdef FAULT_STREAMS_HAVE_NO_ORDER
	:: atomic { len(queue) >= 4 && queue?[copy, id, at, n, token] ->
		queue?what, id, at, n, token; queue!what, id, at, n, token;
		queue?what, id, at, n, token; queue!what, id, at, n, token }
#endif
	:: atomic { nempty(queue) && (!alone || over || queue?[copy, id, at, n, token]) ->
		queue?what, id, at, n, token;
		i = 0;
		do
		:: what == copy && i < n ->
			assert(!gone);
			memory[at+i] = stage[at+i];
			i++
		:: what == kernel && i < n && reads ->
			assert(!gone && memory[at+i] == id);
			i++
		:: else -> break
		od;
		if
		:: what == replay ->
			assert(!reads || !gone);	/* memory of peers is given back */
#ifdef FAULT_CAPTURED_LIES_IN_RING
			assert(!reads || memory[at] == id);
#else
			assert(!reads || storage == id);
#endif
			replays--;
			free()
		:: else
		fi;
#ifdef FAULT_ABORTED_STORES_NOTHING
		token = (over -> 0 : token);
#endif
		word = (token -> token : word) }
	od;
	assert(word == last)
}

proctype Host() {
	byte calls, n, begin, i;
	bool fails, refused;
	do
	:: calls == CALLS || refused -> break
	:: calls < CALLS && !refused ->
		calls++;
		if
		:: captured && !dead && nfull(queue) -> atomic {
#ifdef FAULT_CAPTURED_LIES_IN_RING
			queue!replay, owner, begin, 0, 0;
#else
			queue!replay, owner, 0, 0, 0;
#endif
			replays++ }
		:: captured && !dead -> atomic {
			dead = true;
#ifdef FAULT_GRAPH_FREED_WHEN_DESTROYED
			storage = 0; captured = false; dead = false
#else
			free()
#endif
			}
		:: !captured -> atomic {	/* capture */
			captured = true; owner = calls; storage = calls;
#ifdef FAULT_CAPTURED_WORK_COUNTS
			n = 1;
			if
			:: room -> produced = start + 1
			:: else
			fi
#endif
#ifdef FAULT_CAPTURED_LIES_IN_RING
			begin = produced % CAP; memory[begin] = owner
#endif
			}
		:: len(queue) <= 4 ->	/* launch */
			select(n : 1 .. CAP);
			if
			:: fails = false
			:: fails = true
			fi;
			do
			:: atomic { word > consumed -> consumed = word; assert(word <= produced) }
			:: aborted -> refused = true; break
			:: atomic { room ->
#ifndef FAULT_SKIPPED_DOES_NOT_COUNT
				if
				:: produced == consumed -> produced = start; consumed = produced
				:: else
				fi;
#endif
				begin = start;
				for (i : 0 .. n-1) {
					assert(begin % CAP + i < CAP);
					stage[begin % CAP + i] = calls
				}
				queue!copy, calls, begin % CAP, n, 0;
				if
				:: fails
				:: else ->
					queue!kernel, calls, begin % CAP, n, begin + n;
					last = begin + n
				fi;
#ifndef FAULT_FAILED_LAUNCH_COUNTS
				if
				:: fails
				:: else -> produced = begin + n
				fi;
#else
				produced = begin + n;
#endif
#ifdef FAULT_DONE_WHEN_QUEUED
				word = last;
#endif
				break }
			od
		:: break	/* Close, early */
		fi
	od;
#ifndef FAULT_CLOSE_DOES_NOT_WAIT
	empty(queue);
#endif
	gone = true;
	if	/* a replay after Close */
	:: atomic { captured && !dead && nfull(queue) -> queue!replay, owner, 0, 0, 0; replays++ }
	:: true
	fi;
	quit = true
}

proctype Abort() {
	if
	:: !alone
	:: aborted = true
	fi
}

init {
	if
	:: alone = true
	:: alone = false
	fi;
	atomic { run Host(); run Device(); run Abort() }
}
