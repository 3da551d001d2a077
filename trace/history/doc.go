// Package history keeps what each rank has called last. It is for communicators, which keep their last calls, and for
// "ringo why", which reads their files and judges them.
//
// A Ring is the last Sends and Recvs of one rank. A Record is the file of its last calls and its State, of what its
// communicator has failed, and of which processes the other ranks are.
//
// The trap: ranks have the numbers of their communicator, which Split may have given anew. Members have those of the
// communicator that was the first.
package history
