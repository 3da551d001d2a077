// Package history keeps what each rank has called last. It is for communicators, which keep their last calls, and for
// "ringo why", which reads their files.
//
// A Ring is the last Sends and Recvs of one rank. A Record is the file of its last calls and its State, and Why makes
// one verdict of the Records of all ranks, by package judge.
//
// The trap: a rank that waits is seldom to blame. A rank that is silent, or in no call, is to
// blame; where all ranks wait, it is the connection on which the rank with the least progress waits.
package history
