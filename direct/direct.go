// Package direct holds the collectives in which any rank may talk to any other:
// the one-hop schedules, best for small messages and for ranks that share a
// memory, and the log-step schedules, best for small messages of many ranks.
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
