package gpu

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// Every collective in and out of place, at odd counts and unaligned starts, on 1,
// 2, 4 and 8 GPUs, by direct kernels and by programs.
func TestDeviceCollectives(t *testing.T) {
	tier.Long(t)
	for _, n := range []int{1, 2, 4, 8} {
		for _, algo := range []string{"", "ring"} {
			t.Run(fmt.Sprintf("%d/%s", n, algo), func(t *testing.T) {
				if n == 8 && !gputest.OnGPU() && !tier.Pairs() {
					t.Skip("takes long on few cores")
				}
				comms := commtest.OnDevices(t, gputest.GPUs(t, n, gputest.Emu(cudaemu.Config{Devices: n, Plain: true})),
					ringo.Config{Algo: algo, Timeout: 30 * time.Second})
				room := commtest.Arenas(t, comms, 2*8*4001)
				for i, kind := range commtest.Collectives {
					for k, count := range tier.Some(3, []int{77, 0, 1, 1001}) {
						call := ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum, Root: (i + k) % n}
						commtest.TryOnDevice(t, comms, room, call, false, (i+k)%3)
						commtest.TryOnDevice(t, comms, room, call, true, k%2)
					}
				}
			})
		}
	}
}

// A part of both tables with the checked memory model of the emulator: stores become
// visible late, and races are reported.
func TestDeviceCollectivesStrict(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("hardware has one memory model")
	}
	for _, algo := range []string{"", "ring"} {
		t.Run(algo, func(t *testing.T) {
			comms := commtest.OnDevices(t, gputest.GPUs(t, 3), ringo.Config{Algo: algo, Timeout: 30 * time.Second})
			room := commtest.Arenas(t, comms, 2*8*301)
			for i, kind := range commtest.Collectives {
				call := ringo.Call{Kind: kind, Count: []int{1, 77, 301}[i%3], Type: ringo.Int32, Op: ringo.Sum, Root: i % 3}
				commtest.TryOnDevice(t, comms, room, call, i%2 == 0, i%3)
				call.Type, call.Op = ringo.BFloat16, ringo.Max
				commtest.TryOnDevice(t, comms, room, call, i%2 == 1, (i+1)%3)
			}
			for i, typ := range []ringo.DataType{ringo.Uint8, ringo.Int64, ringo.Float16, ringo.Float32, ringo.Float64,
				ringo.Float8E4M3} {
				op := []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Min}[i%3]
				commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: commtest.Reductions[i%3], Count: 37, Type: typ, Op: op,
					Root: 2}, i%2 == 0, i%3)
			}
		})
	}
}

// Every type with every operator, at odd counts and unaligned starts. With two
// ranks averages are exact in all types and every order. On a GPU, whose driver takes
// 0.1 s for each, a part of them.
func TestDeviceTypesAndOperators(t *testing.T) {
	tier.Long(t)
	some := !tier.Pairs() || gputest.OnGPU()
	for _, algo := range []string{"", "ring"} {
		t.Run(algo, func(t *testing.T) {
			comms := commtest.OnDevices(t, gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, Plain: true})),
				ringo.Config{Algo: algo, Timeout: 30 * time.Second})
			room := commtest.Arenas(t, comms, 4*8*301)
			for i, typ := range kernels.Types() {
				for k, op := range []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg, ringo.BitAnd, ringo.BitOr,
					ringo.BitXor, ringo.PreMulSum(2)} {
					if _, err := kernels.NewReducer(typ, op, 2); err != nil || some && (i+k)%9 != 0 {
						continue
					}
					for j, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindReduce, ringo.KindReduceScatter} {
						call := ringo.Call{Kind: kind, Count: []int{1, 37, 300}[(i+k+j)%3], Type: typ, Op: op, Root: j % 2}
						commtest.TryOnDevice(t, comms, room, call, (i+k)%2 == 0, (i+j)%3)
					}
				}
			}
		})
	}
}
