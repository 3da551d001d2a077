// Package rendezvous decides for a group of ranks that have found each other: whether an AllGather completes, who has
// failed and who is to blame, which ranks disagree, who has left, and who goes on after a failure. It also has the
// messages of a rendezvous, and how they are written.
//
// A [Machine] is pure: [Machine.Step] takes an event and returns what is to be done. It knows no network, no clock, no
// timer, no goroutine and no lock, so a group under a seed is the same group each time.
//
// The parts of the machine know each other only downwards: each of gathers, calls, stages, cuts, rounds and inquiries
// decides by itself, and the machine brings them together.
//
// Of it nothing here is promised to other modules, but for the types that package bootstrap names too.
package rendezvous
