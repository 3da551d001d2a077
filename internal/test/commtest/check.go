package commtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// Arenas are memory for the buffers of each rank's call, 512 bytes apart.
func Arenas(t *testing.T, comms []*ringo.Comm, n int) []mem.Region {
	t.Helper()
	var all []mem.Region
	for _, c := range comms {
		all = append(all, Alloc(t, c.Device(), make([]byte, 2*n+2048)))
	}
	return all
}

// TryOnDevice makes one collective on all ranks, in or out of place, with buffers
// that are shift elements off, and compares them and the memory around them. Ranks that
// share a GPU need streams of their own.
func TryOnDevice(t *testing.T, comms []*ringo.Comm, room []mem.Region, call ringo.Call, inPlace bool, shift int,
	streams ...gpu.Stream) {
	t.Helper()
	try(t, comms, call, inPlace, shift*call.Type.Size(), func(r, _ int) mem.Region { return room[r] },
		func(calls []ringo.Call) {
			for r, c := range comms {
				if len(streams) > 0 {
					calls[r].Stream = streams[r]
				}
				require.NoError(t, c.Do(&calls[r]))
			}
			for r, c := range comms {
				require.NoError(t, c.Synchronize(calls[r].Stream))
			}
		})
}

// Try makes one collective on all ranks, in or out of place, with buffers of the host that are shift bytes off, and
// compares them and the memory around them.
func Try(t *testing.T, comms []*ringo.Comm, call ringo.Call, inPlace bool, shift int) {
	t.Helper()
	try(t, comms, call, inPlace, shift, func(_, n int) mem.Region { return mem.Host(make([]byte, n)) },
		func(calls []ringo.Call) {
			NoErrors(t, Each(comms, func(c *ringo.Comm) error { return c.Do(&calls[c.Rank()]) }))
		})
}

// try is Try in the memory that room makes for each rank, by calls that run makes.
func try(t *testing.T, comms []*ringo.Comm, call ringo.Call, inPlace bool, shift int, room func(r, n int) mem.Region,
	run func(calls []ringo.Call)) {
	t.Helper()
	n, size := len(comms), call.Type.Size()
	ins, images, calls := make([][]byte, n), make([][]byte, n), make([]ringo.Call, n)
	rooms, outAt := make([]mem.Region, n), make([]int, n)
	for r, c := range comms {
		in, out := call.Shape(r, n)
		full := in
		if call.Kind == ringo.KindBroadcast || call.Kind == ringo.KindScatter {
			full, _ = call.Shape(call.Root, n)
		}
		ins[r] = data(call.Type, call.Op.Kind, r, full, 7)
		inAt := 512 + shift
		outAt[r] = 1024 + (max(in, out)*size+15)/16*16 + shift
		if inPlace {
			share := r * call.Count * size
			outAt[r] = inAt
			switch call.Kind {
			case ringo.KindAllGather, ringo.KindGather:
				if out > 0 {
					inAt += share
				}
			case ringo.KindReduceScatter, ringo.KindScatter:
				if in > 0 {
					outAt[r] += share
				}
			}
		}
		images[r] = bytes.Repeat([]byte{0xa5}, max(inAt+in*size, outAt[r]+out*size)+512)
		copy(images[r][inAt:], ins[r][:in*size])
		if rooms[r] = room(r, len(images[r])); rooms[r].IsHost() {
			copy(rooms[r].Bytes(), images[r])
		} else {
			require.NoError(t, c.Device().Write(rooms[r], images[r]))
		}
		calls[r] = call
		calls[r].In, calls[r].Out = rooms[r].Slice(inAt, in*size), rooms[r].Slice(outAt[r], out*size)
	}
	run(calls)
	for r, c := range comms {
		want, got := oracle(t, &call, ins, r), make([]byte, len(images[r]))
		copy(images[r][outAt[r]:], want)
		if rooms[r].IsHost() {
			copy(got, rooms[r].Bytes())
		} else {
			require.NoError(t, c.Device().Read(got, rooms[r]))
		}
		if call.Kind.Reduces() && call.Kind != ringo.KindAllReduce && inPlace { // what is not the result is undefined
			_, out := call.Shape(r, n)
			got, images[r] = got[outAt[r]:][:out*size], images[r][outAt[r]:][:out*size]
		}
		require.True(t, bytes.Equal(images[r], got), "%v, rank %d of %d, in place %v, shift %d:\nwant %x\n got %x",
			call.String(), r, n, inPlace, shift, head(want), head(got[min(len(got), outAt[r]):]))
	}
}

// EveryCall is a call of each kind of collective for n ranks, without memory.
func EveryCall(n, count int, typ ringo.DataType, op ringo.RedOp) []ringo.Call {
	calls := []ringo.Call{{Kind: ringo.KindBarrier}}
	for k := ringo.KindAllReduce; k < ringo.KindSend; k++ {
		calls = append(calls, ringo.Call{Kind: k, Count: count, Type: typ, Op: op, Root: n - 1})
	}
	counts := make([]int, n)
	for i := range counts {
		counts[i] = count * (i % 2) // every other rank has nothing
	}
	return append(calls, ringo.Call{Kind: ringo.KindAllGatherv, Type: typ, OutCounts: counts})
}

// CheckCalls carries calls out on GPUs and compares with the same calls on host memory,
// for which the communicator has other code and connections.
func CheckCalls(c *ringo.Comm, calls []ringo.Call) error {
	d := c.Device()
	rng := rand.New(rand.NewPCG(uint64(c.Rank()), 1))
	for _, call := range calls {
		size := 1
		if call.Kind != ringo.KindBarrier {
			size = call.Type.Size()
		}
		in, out := call.Shape(c.Rank(), c.Size())
		give, want, got := make([]byte, in*size), make([]byte, out*size), make([]byte, out*size)
		for i := range give {
			if i%size == 0 || size == 1 { // small numbers, also as floats
				give[i] = byte(rng.IntN(4))
			}
		}
		host := call
		host.In, host.Out = mem.Host(give), mem.Host(want)
		from, err := d.Alloc(max(1, len(give)))
		to, err2 := d.Alloc(max(1, len(got)))
		if err = errors.Join(c.Do(&host), err, err2); err != nil {
			return err
		}
		call.In, call.Out = from.Slice(0, len(give)), to.Slice(0, len(got))
		if err := errors.Join(d.Write(call.In, give), d.Write(to, bytes.Repeat([]byte{0xee}, max(1, len(got))))); err != nil {
			return err
		}
		if err := errors.Join(c.Do(&call), c.Synchronize(call.Stream), d.Read(got, call.Out)); err != nil {
			return err
		}
		if !bytes.Equal(got, want) && !(call.Kind == ringo.KindReduce && c.Rank() != call.Root) {
			return fmt.Errorf("rank %d: %v is wrong", c.Rank(), &call)
		}
		if err := errors.Join(d.Free(from), d.Free(to)); err != nil {
			return err
		}
	}
	return nil
}
