package ringo

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// arenas are memory for the buffers of each rank's call, 512 bytes apart.
func arenas(t *testing.T, comms []*Comm, n int) []mem.Region {
	t.Helper()
	var all []mem.Region
	for _, c := range comms {
		all = append(all, alloc(t, c.Device(), make([]byte, 2*n+2048)))
	}
	return all
}

// tryOnDevice makes one collective on all ranks, in or out of place, with buffers
// that are shift elements off, and compares them and what lies around. Ranks that share a GPU
// need streams of their own.
func tryOnDevice(t *testing.T, comms []*Comm, room []mem.Region, call Call, inPlace bool, shift int, streams ...gpu.Stream) {
	t.Helper()
	stream := func(r int) gpu.Stream {
		if len(streams) > 0 {
			return streams[r]
		}
		return call.Stream
	}
	n, size := len(comms), call.Type.Size()
	ins, images := make([][]byte, n), make([][]byte, n)
	outAt := make([]int, n)
	for r, c := range comms {
		in, out := call.Shape(r, n)
		full := in
		if call.Kind == KindBroadcast || call.Kind == KindScatter {
			full, _ = call.Shape(call.Root, n)
		}
		ins[r] = data(call.Type, call.Op.Kind, r, full, 7)
		inAt := 512 + shift*size
		outAt[r] = 1024 + (max(in, out)*size+15)/16*16 + shift*size
		if inPlace {
			share := r * call.Count * size
			outAt[r] = inAt
			switch call.Kind {
			case KindAllGather, KindGather:
				if out > 0 {
					inAt += share
				}
			case KindReduceScatter, KindScatter:
				if in > 0 {
					outAt[r] += share
				}
			}
		}
		images[r] = bytes.Repeat([]byte{0xa5}, max(inAt+in*size, outAt[r]+out*size)+512)
		copy(images[r][inAt:], ins[r][:in*size])
		require.NoError(t, c.Device().Write(room[r], images[r]))
		mine := call
		mine.Stream = stream(r)
		mine.In, mine.Out = room[r].Slice(inAt, in*size), room[r].Slice(outAt[r], out*size)
		require.NoError(t, c.Do(&mine))
	}
	for r, c := range comms {
		require.NoError(t, c.Synchronize(stream(r)))
		want := oracle(t, &call, ins, r)
		copy(images[r][outAt[r]:], want)
		got := make([]byte, len(images[r]))
		require.NoError(t, c.Device().Read(got, room[r]))
		if call.Kind.Reduces() && call.Kind != KindAllReduce && inPlace { // what is not the result is undefined
			_, out := call.Shape(r, n)
			got, images[r] = got[outAt[r]:][:out*size], images[r][outAt[r]:][:out*size]
		}
		require.True(t, bytes.Equal(images[r], got), "%v, rank %d of %d, in place %v, shift %d:\nwant %x\n got %x",
			call.String(), r, n, inPlace, shift, head(want), head(got[min(len(got), outAt[r]):]))
	}
}

// Every collective in and out of place, at odd counts and unaligned starts, on 1,
// 2, 4 and 8 GPUs, by direct kernels and by programs.
func TestDeviceCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		for _, algo := range []string{"", "ring"} {
			t.Run(fmt.Sprintf("%d/%s", n, algo), func(t *testing.T) {
				if n == 8 && !gputest.OnGPU() && (testing.Short() || race.Enabled) {
					t.Skip("takes long on few cores")
				}
				comms := onDevices(t, devices(t, n, gputest.Emu(cudaemu.Config{Devices: n, Plain: true})), Config{Algo: algo, Timeout: 30 * time.Second})
				room := arenas(t, comms, 2*8*4001)
				for i, kind := range collectives {
					for k, count := range race.Some(3, []int{77, 0, 1, 1001}) {
						call := Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: (i + k) % n}
						tryOnDevice(t, comms, room, call, false, (i+k)%3)
						tryOnDevice(t, comms, room, call, true, k%2)
					}
				}
			})
		}
	}
}

// A part of both tables with the checked memory model of the emulator: stores become
// visible late, and races are reported.
func TestDeviceCollectivesStrict(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("hardware has one memory model")
	}
	for _, algo := range []string{"", "ring"} {
		t.Run(algo, func(t *testing.T) {
			comms := onDevices(t, devices(t, 3), Config{Algo: algo, Timeout: 30 * time.Second})
			room := arenas(t, comms, 2*8*301)
			for i, kind := range collectives {
				call := Call{Kind: kind, Count: []int{1, 77, 301}[i%3], Type: Int32, Op: Sum, Root: i % 3}
				tryOnDevice(t, comms, room, call, i%2 == 0, i%3)
				call.Type, call.Op = BFloat16, Max
				tryOnDevice(t, comms, room, call, i%2 == 1, (i+1)%3)
			}
			for i, typ := range []DataType{Uint8, Int64, Float16, Float32, Float64, Float8E4M3} {
				op := []RedOp{Sum, Prod, Min}[i%3]
				tryOnDevice(t, comms, room, Call{Kind: reductions[i%3], Count: 37, Type: typ, Op: op, Root: 2}, i%2 == 0, i%3)
			}
		})
	}
}

// Every type with every operator, at odd counts and unaligned starts. With two
// ranks averages are exact in all types and every order. On a GPU, whose driver takes
// 0.1 s for each, a part of them.
func TestDeviceTypesAndOperators(t *testing.T) {
	some := testing.Short() || race.Enabled || gputest.OnGPU()
	for _, algo := range []string{"", "ring"} {
		t.Run(algo, func(t *testing.T) {
			comms := onDevices(t, devices(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, Plain: true})), Config{Algo: algo, Timeout: 30 * time.Second})
			room := arenas(t, comms, 4*8*301)
			for i, typ := range kernels.Types() {
				for k, op := range []RedOp{Sum, Prod, Max, Min, Avg, BitAnd, BitOr, BitXor, PreMulSum(2)} {
					if _, err := kernels.NewReducer(typ, op, 2); err != nil || some && (i+k)%6 != 0 {
						continue
					}
					for j, kind := range []Kind{KindAllReduce, KindReduce, KindReduceScatter} {
						call := Call{Kind: kind, Count: []int{1, 37, 300}[(i+k+j)%3], Type: typ, Op: op, Root: j % 2}
						tryOnDevice(t, comms, room, call, (i+k)%2 == 0, (i+j)%3)
					}
				}
			}
		})
	}
}
