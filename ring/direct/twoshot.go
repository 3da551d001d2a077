package direct

import "github.com/ringo-go/ringo/sched"

// TwoShot is the all-reduce of 2 hops; a rank sends 2(n-1)/n of the data, the
// least possible. It is ReduceScatter and then AllGather: rank q adds up chunk q
// of all ranks and sends the sum to all others. It is the choice for ranks that
// reach each other at the same speed, from the size on where bytes count.
type TwoShot struct{ N int }

// Shape is n chunks in and out, no scratch: chunk q of rank q grows in Out.
func (a TwoShot) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is 2(n-1) sends and as many receives; the last addition and the first send
// of the sum are one step.
func (a TwoShot) Len(sched.Rank) int { return max(1, 4*(a.N-1)-1) }

// At sends the parts, adds, sends the sum and receives, nearest rank first.
func (a TwoShot) At(r sched.Rank, i int) sched.Step {
	n := a.N
	if n == 1 {
		return local(sched.In.At(0), sched.Out.At(0))
	}
	own := int(r)
	if i < n-1 { // to the rank i+1 places on, its part
		to := r.After(i+1, n)
		return send(sched.In.At(int(to)), to)
	}
	if i -= n - 1; i < n-1 { // from the rank i+1 places back, a part of the own chunk
		s := add(r.After(-i-1, n), sched.Out.At(own), sched.Out.At(own))
		if i == 0 {
			s.Src = sched.In.At(own)
		}
		if i == n-2 {
			s.Send = r.After(1, n)
		}
		return s
	}
	if i -= n - 1; i < n-2 { // to the rank i+2 places on, the sum
		return send(sched.Out.At(own), r.After(i+2, n))
	}
	i -= n - 2
	from := r.After(-i-1, n)
	return recv(from, sched.Out.At(int(from)))
}
