// Package direct holds, as schedules, the collectives in which any rank may talk to any other.
// Those of one or two hops are for small messages and for ranks that share a
// memory; those of log n rounds are for small messages of many ranks.
//
// The trap: a rank has a connection to each of its partners, up to n-1, and where
// ranks share a network card their messages queue up in it.
package direct

import "github.com/ringo-go/ringo/sched"

// The steps that move one chunk and do nothing else.
func local(src, dst sched.Ref) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: src, Dst: dst, Send: sched.Nobody}
}

func send(src sched.Ref, to sched.Rank) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: src, Send: to}
}

func recv(from sched.Rank, dst sched.Ref) sched.Step {
	return sched.Step{Recv: from, Dst: dst, Send: sched.Nobody}
}

// add receives, adds src and stores.
func add(from sched.Rank, src, dst sched.Ref) sched.Step {
	return sched.Step{Recv: from, Src: src, Dst: dst, Send: sched.Nobody}
}
