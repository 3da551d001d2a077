// Package judge says who is to blame, and says so only with proof. It has three pure functions, for the rendezvous,
// for communicators and for "ringo why". Waits judges ranks that hold up others, by where each rank stands. Losses
// judges hosts that hear nothing of each other, by what each witness hears. Elect makes one answer of what ranks say
// of one failure. State is part of histories; else nothing here is promised to other modules.
//
// The trap: who hears nothing may be cut off itself. So a host is to blame only if two others have lost it, and a path
// only if both its ends are heard elsewhere; else nobody is, and the answer has the candidates.
package judge
