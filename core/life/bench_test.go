package life

import (
	"testing"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// What a collective costs that is numbered and remembered.
func BenchmarkNext(b *testing.B) {
	var turn Turn
	stamp := call.Sign{Kind: call.AllReduce, Type: kernels.Float32, Count: 2}.Stamp()
	for b.Loop() {
		turn.Next(stamp, Collective, false)
	}
}
