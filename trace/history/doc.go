// Package history knows what each rank has called last, and finds the ranks that hold up the
// others. It is for the rendezvous, which judges a group whose operations run out of time; for
// communicators, which keep their last calls; and for "ringo why", which reads their files.
//
// A Ring is the last Sends and Recvs of one rank. A State is where a rank is, and Blame, a pure
// function, finds in the States of all ranks the culprits. A Record is the file of one rank's
// last calls and State, and Why makes one verdict of the Records of all ranks.
//
// The trap: a rank that waits is seldom to blame. A rank that is silent, or in no call, is to
// blame; where all ranks wait, it is the connection on which the rank with the least progress waits.
package history
