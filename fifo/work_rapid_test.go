package fifo

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An act is what a caller of the property test does once.
type act struct {
	kind  string
	items []workItem
}

type workItem struct {
	caller, seq int
	err         error
}

// genCaller draws the life of one caller: launches of all kinds and sizes, some
// larger than the ring of 4, some captured, some of whose items fail.
func genCaller(t *rapid.T, caller int) []act {
	seq := 0
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		a := act{kind: rapid.SampledFrom([]string{"push", "try", "all", "some", "capture"}).Draw(t, "kind")}
		n := 1
		if a.kind == "all" || a.kind == "some" || a.kind == "capture" {
			n = rapid.IntRange(0, 13).Draw(t, "items")
		}
		for range n {
			it := workItem{caller: caller, seq: seq}
			if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
				it.err = fmt.Errorf("item %d of caller %d broke", seq, caller)
			}
			seq++
			a.items = append(a.items, it)
		}
		return a
	}), 1, 12).Draw(t, "acts")
}

// firstError is what the Token of a launch must say.
func firstError(items []workItem) error {
	for _, it := range items {
		if it.err != nil {
			return it.err
		}
	}
	return nil
}

func TestWorkProperties(t *testing.T) {
	noLeaks(t)
	rapid.Check(t, checkWork)
}

func FuzzWork(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkWork)) }

// checkWork lets drawn callers meet a carrier that takes drawn bursts and that
// may end the Guard or close the Work in the middle.
func checkWork(t *rapid.T) {
	var g Guard
	w := NewWork[workItem](4, &g)
	callers := rapid.IntRange(1, 4).Draw(t, "callers")
	acts := make([][]act, callers)
	for c := range acts {
		acts[c] = genCaller(t, c)
	}
	bursts := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 8).Draw(t, "bursts")
	end := rapid.SampledFrom([]string{"none", "abort", "deadline", "close"}).Draw(t, "end")
	endAfter := rapid.IntRange(0, 60).Draw(t, "end after")

	var accepted, replayed atomic.Int64 // items
	var failed atomic.Pointer[string]
	fail := func(format string, args ...any) {
		s := fmt.Sprintf(format, args...)
		failed.CompareAndSwap(nil, &s)
	}
	var got []workItem
	var carrier sync.WaitGroup
	carrier.Go(func() {
		for k := 0; ; k++ {
			var taken []workItem
			for range bursts[k%len(bursts)] {
				if len(taken) > 0 && w.Len() == len(taken) {
					break // nothing more: do not wait with work in hand
				}
				it, err := w.Next()
				if err != nil {
					if len(taken) == 0 {
						return
					}
					break
				}
				taken = append(taken, *it)
			}
			for _, it := range taken {
				got = append(got, it)
				w.Done(it.err)
			}
			if len(got) > endAfter {
				switch end {
				case "abort":
					g.Abort(errBroken)
				case "deadline":
					g.SetDeadline(1)
				case "close":
					w.Close()
				}
			}
		}
	})

	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for _, a := range acts[c] {
				items := a.items
				var tok Token
				var err error
				n := len(items)
				switch a.kind {
				case "push":
					if tok, err = w.Push(items[0]); err != nil {
						n = 0
					}
				case "try":
					if tok, err = w.TryPush(items[0]); err != nil {
						n = 0
					}
				case "all":
					tok, n, err = w.PushAll(items)
				case "some":
					for err == nil && len(items) > 0 {
						if tok, n, err = w.PushSome(items); n > 4 {
							fail("PushSome put %d items into a ring of 4", n)
						}
						accepted.Add(int64(n))
						if werr := tok.Wait(nil); werr != firstError(items[:n]) {
							fail("token of %v: %v", items[:n], werr)
						}
						items = items[n:]
					}
					n = 0
				case "capture":
					captured := Capture(items)
					for range len(items) % 3 { // captured without replay, or replayed
						replayed.Add(int64(len(captured.Items())))
					}
					n = 0
				}
				accepted.Add(int64(n))
				if n > 0 {
					if werr := tok.Wait(nil); werr != firstError(items[:n]) {
						fail("token of %v: %v", items[:n], werr)
					}
				}
				if err != nil && end == "none" && err != ErrFull {
					fail("%s: %v", a.kind, err)
				}
			}
		})
	}
	wg.Wait()
	w.Close()
	carrier.Wait()

	if s := failed.Load(); s != nil {
		t.Fatal(*s)
	}
	require.Equal(t, int(accepted.Load()), len(got), "every item that went in is carried out once")
	require.Equal(t, uint64(len(got)), w.Produced(), "and nothing else moves the counters")
	require.Equal(t, uint64(len(got)), w.Consumed())
	require.Zero(t, w.Len())
	require.Equal(t, int64(wantReplays(acts)), replayed.Load())
	requireOrder(t, acts, got)
}

func wantReplays(acts [][]act) (n int) {
	for _, list := range acts {
		for _, a := range list {
			if a.kind == "capture" {
				n += len(a.items) * (len(a.items) % 3)
			}
		}
	}
	return n
}

// requireOrder: each caller's items come in its order and none twice, and a
// group of PushAll stays together.
func requireOrder(t *rapid.T, acts [][]act, got []workItem) {
	last := make([]int, len(acts))
	for i := range last {
		last[i] = -1
	}
	for _, it := range got {
		require.Greater(t, it.seq, last[it.caller])
		last[it.caller] = it.seq
	}
	for _, list := range acts {
		for _, a := range list {
			if a.kind != "all" || len(a.items) == 0 {
				continue
			}
			at := slices.Index(got, a.items[0])
			for i := 1; at >= 0 && i < len(a.items) && slices.Contains(got, a.items[i]); i++ {
				require.Equal(t, a.items[i], got[at+i], "a group stays together")
			}
		}
	}
}
