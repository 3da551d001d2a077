package sched_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

func ExampleFormat() {
	fmt.Print(sched.Format(ring.AllReduce{N: 2}))
	// Output:
	// 2 ranks; chunks: 2 in, 2 out
	//
	// rank 0  value           keep    send
	//      0  In[1]                   to 1
	//      1  from 1 ⊕ In[0]  Out[0]  to 1
	//      2  from 1          Out[1]
	//
	// rank 1  value           keep    send
	//      0  In[0]                   to 0
	//      1  from 0 ⊕ In[1]  Out[1]  to 0
	//      2  from 0          Out[0]
}

func ExampleCheck() {
	s := tree.Broadcast{N: 8, Root: 3}
	fmt.Println(sched.Check(s, sched.Broadcast(3), 2, false))
	fmt.Println(sched.Check(s, sched.Broadcast(4), 2, false))
	// Output:
	// <nil>
	// check broadcast from 4: rank 3 step 0 (In[1] → Out[1] → 0): rank 3 has no In in this collective
}

func TestStepString(t *testing.T) {
	for want, s := range map[string]sched.Step{
		"In[2] → 1":                    {Recv: nobody, Src: in(2), Send: 1},
		"from 3 ⊕ In[2] → 1":           {Recv: 3, Src: in(2), Send: 1},
		"from 3 ⊕ Tmp[0] → Out[2] → 1": {Recv: 3, Src: tmp(0), Dst: out(2), Send: 1},
		"from 3 → Out[2]":              {Recv: 3, Dst: out(2), Send: nobody},
		"from 0 ⊕ Buffer(9)[1] → 0":    {Src: sched.Ref{Buf: 9, Chunk: 1}},
		"from 0 → 0":                   {},
	} {
		require.Equal(t, want, s.String())
	}
}
