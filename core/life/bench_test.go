package life

import (
	"testing"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// BenchmarkNext is the time to number and remember a collective.
func BenchmarkNext(b *testing.B) {
	var turn Turn
	stamp := call.Sign{Kind: call.AllReduce, Type: kernels.Float32, Count: 2}.Stamp()
	for b.Loop() {
		turn.Next(stamp, Collective, false)
	}
}
