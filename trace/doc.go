// Package trace records what each rank of a communicator has done and when: its calls, the steps of
// their schedules, and the rank that each step waited for. It is for programs that watch a
// communicator (ringo.Config.Observer), for "ringo bench -trace" and "ringo sim -trace", and for
// programs that read their files.
//
// An Observer is told of every Call; engines note Spans in it. A Recorder is an Observer that keeps
// the last calls. A Trace is calls of any number of ranks: Write makes a file of it, Read reads that,
// Check finds times that cannot be, and Arrivals the ranks that came last.
//
// The trap: clocks. Times are of the process's own clock (Now). Between processes of one host they agree
// to some µs, between hosts as well as their system clocks do. Package bench/join measures how they
// differ and puts ranks onto the clock of rank 0.
//
// # What a wait is
//
// A wait is the time in which a step asks a connection for the next message, or for a free slot, even if that is there
// at once. For a message that is stored unchanged it includes the copy from the connection, as from a socket, whose
// bytes the system copies. A model notes the wait for the first slot of a message and not for the slots after it.
//
// # On GPUs
//
// Of a call on a GPU two things are seen: when the host queued it, and when the GPU carried it out, by events on its
// stream before and after it, that is by the GPU's clock. That clock is set by the host's when the communicator opens,
// to some 10 µs, and corrected afterwards where a call would begin before it is queued. The steps within a kernel are
// not seen, nor for whom it waits; calls of a group that share a kernel have its times. Of a call that is captured, and
// of calls beyond 256 that are queued and not done, only the times of queueing are known.
//
// # The file
//
// A file is JSON in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing show:
// {"displayTimeUnit": "ns", "otherData": {"format": "ringo trace 1", "start": "…"}, "traceEvents": […]}.
// start is a Unix time in ns; ts and dur are in µs after it, with three decimals. A rank is a
// process (pid), and what it does side by side are its threads (tid): 1 its calls on host memory, 2 and up
// those that a group carries out beside each other, 10001 its GPU, 20001 the same rank in a model (ringo sim).
// Events of phase M name them. All others have phase X, and a category, cat:
//
//	call   a call. args: call (its number in the file, from 0), comm, rank, size, host, number (among
//	       the collectives, 0 for Send and Recv), kind, algo, bytes, peer (root or peer, or -1),
//	       lane (Call.Track), gpu, model, lost (spans for which there was no room), error
//	queue  on thread 1: the host queues a call that the GPU carries out. args: call
//	step   a step of the schedule over one piece of the data. args: call, part, round, step, recv, send.
//	       step is i of sched.Schedule.At(rank, i), round the piece; recv and send are ranks, -1 for
//	       none. part is 0 unless several schedules carry out one call
//	wait   within a step: it waits for a message of recv, or for room at send (the other is -1).
//	       args as of step; step is -1 for the wait at a call's end until peers have taken what was
//	       lent to them
//	connect
//	       a wait while the connection is made
//
// Spans follow their call, and waits their step. Write and Read are each other's inverse.
package trace
