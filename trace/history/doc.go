// Package history says what each rank has called last, and who holds up the others. It is for
// the rendezvous, which judges a group whose operations run out of time; for communicators,
// which keep their last calls; and for "ringo why", which reads what they have written.
//
// A Ring is the last calls of one rank. A State is where a rank is, and Blame, a pure function,
// finds in the States of all ranks those that are the cause. A Record is a Ring and a State as a
// file, and Why makes one verdict of the Records of all ranks.
//
// The trap: who waits is seldom to blame. A rank that is not heard of, or that is in no call,
// is; and where all wait, the connection that the rank with the least progress waits for.
package history
