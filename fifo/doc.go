// Package fifo holds the bounded queues between two parties that share memory, and the
// Guard at which all waits of this library look. It is for transports and engines.
//
// A queue of messages has a Producer and a Consumer: goroutines of one process
// (NewLocal) or processes that map the same memory (NewProducer, NewConsumer).
// The transports inproc and shm are made of such queues. A Work is a queue of operations
// between callers and the goroutine that carries them out, a Space one of a device's
// launches. A Guard carries deadline and abort to every wait.
//
// The trap: a Producer and a Consumer are each for one goroutine at a time; only
// Close and Fail may be called from others. The two parties check each other's numbers:
// one that no honest peer writes is ErrCorrupt.
package fifo
