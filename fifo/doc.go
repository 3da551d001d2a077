// Package fifo holds the bounded queues between two parties that share memory,
// and what all waits of this library look at.
//
// A queue of messages has a Producer and a Consumer: goroutines of one process
// (NewLocal) or processes that map the same memory (NewProducer, NewConsumer).
// The transports inproc and shm are made of it. A Work is a queue of operations
// between callers and the one who carries them out. A Guard carries deadline and
// abort to every wait.
//
// The trap: a Producer and a Consumer are each for one goroutine at a time; only
// Close and Fail may be called from others. And the two parties trust no number
// of each other: memory that holds what no honest peer writes is ErrCorrupt.
package fifo
