package host

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// Every collective, with every algorithm, at sizes around its seams: no element,
// fewer than ranks, one slot, a piece and more than a queue.
func TestCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8} {
		cfg := ringo.Config{SlotBytes: 256, Slots: 4}
		for a := range call.Algos {
			cfg.Algo = a.String()
			name := fmt.Sprintf("n=%d/%v", n, a)
			t.Run(name, func(t *testing.T) {
				comms := commtest.Local(t, n, cfg)
				for _, kind := range commtest.Collectives {
					if !hasAlgo(kind, a) {
						continue
					}
					for i, count := range []int{0, 1, 3, n, 63, 64, 65, 129, 1000, 3001} {
						if !tier.Pairs() && (i+int(kind)+int(a))%3 > 0 {
							continue
						}
						for _, root := range []int{0, n / 2, n - 1} {
							op := ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum, Root: root}
							commtest.Try(t, comms, op, count%2 == 0, 0)
							commtest.Try(t, comms, op, count%2 == 1, 0)
							if !kind.Rooted() {
								break
							}
						}
					}
				}
			})
		}
	}
}

func hasAlgo(kind ringo.Kind, a call.Algo) bool {
	return a == call.Auto || choice.Key{Kind: kind, Algo: a}.Exists(choice.Blocks(8, 0))
}

// Every type with every operator, at odd counts and unaligned starts. With four
// ranks averages are exact in all types and every order.
func TestTypesAndOperators(t *testing.T) {
	comms := commtest.Local(t, 4, ringo.Config{SlotBytes: 256, Slots: 4})
	for _, typ := range kernels.Types() {
		for _, op := range []ringo.RedOp{ringo.Sum, ringo.Prod, ringo.Max, ringo.Min, ringo.Avg, ringo.BitAnd, ringo.BitOr,
			ringo.BitXor, ringo.PreMulSum(2)} {
			if _, err := kernels.NewReducer(typ, op, 4); err != nil {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", typ, op), func(t *testing.T) {
				for _, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindReduce, ringo.KindReduceScatter} {
					for _, count := range tier.Some(2, []int{500, 1, 37}) {
						commtest.Try(t, comms, ringo.Call{Kind: kind, Count: count, Type: typ, Op: op}, false, count%3)
						commtest.Try(t, comms, ringo.Call{Kind: kind, Count: count, Type: typ, Op: op}, true, count%2)
					}
				}
			})
		}
	}
}
