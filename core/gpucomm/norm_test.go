package gpucomm

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// normed are the sums and normed rows of a call with a Norm of all ranks.
func (a *arena) normed(t *testing.T, kind call.Kind, rows int) [][]byte {
	const row = 64
	n := len(a.comms)
	all := make([][]byte, n)
	each(t, a.comms, func(g *Comm) error {
		r, m := g.Life.Rank, a.memory[g.Life.Rank]
		whole := rows
		if kind == call.ReduceScatter {
			whole *= n
		}
		fill := func(seed uint64, n int) (b []byte) {
			rng := rand.New(rand.NewPCG(seed, 2))
			for range n {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rng.NormFloat64())))
			}
			return b
		}
		in, out, weight := m.Slice(0, whole*row*4), m.Slice(roomOf/2, rows*row*8), m.Slice(roomOf-row*4, row*4)
		sum, normed := out.Slice(0, rows*row*4), out.Slice(rows*row*4, rows*row*4)
		c := call.Call{
			Kind: kind, In: in, Out: sum, Count: rows * row, Type: kernels.Float32,
			Norm: &call.Norm{Row: row, Epsilon: 1e-5, Residual: sum, Weight: weight, Normed: normed},
		}
		err := errors.Join(g.Device.Write(in, fill(uint64(r), whole*row)), g.Device.Write(sum, fill(99, rows*row)),
			g.Device.Write(weight, fill(98, row)),
			g.do(&c), g.Device.Synchronize(0))
		all[r] = make([]byte, out.Len())
		return errors.Join(err, g.Device.Read(all[r], out))
	})
	return all
}

// Rows whose contributions are more than a rank has room for are finished in pieces, with the bits of one kernel.
func TestNormPieces(t *testing.T) {
	list := gputest.GPUs(t, 3)
	whole := openArena(t, "aaa", list, func(*Options) {})
	pieces := openArena(t, "aab", list, func(*Options) {})
	for _, g := range pieces.comms {
		require.NoError(t, g.workplace.open())
		r := g.workplace.reduction
		r.ScratchBytes, r.Whole = 4<<10, 1<<10
	}
	for _, kind := range []call.Kind{call.AllReduce, call.ReduceScatter} {
		for _, rows := range []int{0, 1, 7, 50} {
			require.Equal(t, whole.normed(t, kind, rows), pieces.normed(t, kind, rows), "%v of %d rows", kind, rows)
		}
	}
}
