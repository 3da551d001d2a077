package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// collective makes a call of any kind on n ranks for one of them, with memory of its own.
func collective(kind ringo.Kind, n, rank, count, root int) *ringo.Call {
	c := &ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum, Root: root}
	switch kind {
	case ringo.KindBarrier:
		return &ringo.Call{Kind: kind}
	case ringo.KindAllGatherv:
		c.Count, c.OutCounts = 0, make([]int, n)
		for r := range n {
			c.OutCounts[r] = count + r
		}
	case ringo.KindAlltoAllv:
		c.Count, c.InCounts, c.OutCounts = 0, make([]int, n), make([]int, n)
		for r := range n {
			c.InCounts[r], c.OutCounts[r] = count+r+rank, count+r+rank
		}
	}
	in, out := c.Shape(rank, n)
	c.In, c.Out = mem.Of(make([]int32, in)), mem.Of(make([]int32, out))
	return c
}

var allCollectives = []ringo.Kind{ringo.KindBarrier, ringo.KindAllReduce, ringo.KindReduce, ringo.KindBroadcast,
	ringo.KindAllGather, ringo.KindReduceScatter,
	ringo.KindAlltoAll, ringo.KindGather, ringo.KindScatter, ringo.KindAllGatherv, ringo.KindAlltoAllv}

// One rank makes another call than the others: another kind, root or count, small or large.
// Whatever the two are, every rank ends soon with an error that names both, in this call
// or, where it needs nothing from the others, in the next.
func TestDisagreement(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	const most = tier.Patience
	rng := rand.New(rand.NewPCG(3, 4))
	room := semaphore.NewWeighted(24)
	var wg sync.WaitGroup
	for k, cfg := range commtest.EveryTransport {
		for n := 2; n <= 5; n++ {
			for i, a := range allCollectives {
				for j, b := range allCollectives {
					countA, countB := []int{5, 50_000}[rng.IntN(2)], []int{5, 50_000}[rng.IntN(2)]
					rootA, rootB, odd := rng.IntN(n), rng.IntN(n), rng.IntN(n)
					if a == b && a == ringo.KindBarrier {
						continue
					}
					if a == b && a.Rooted() {
						rootB = (rootA + 1) % n
					} else if a == b {
						countB = countA + 1
					}
					if tier.Race && n > 3 || !tier.Full() && (2+(i+j)%4 != n || (i+2*j)%len(commtest.EveryTransport) != k) {
						continue // each pair once
					}
					require.NoError(t, room.Acquire(t.Context(), 1))
					wg.Go(func() {
						defer room.Release(1)
						name := fmt.Sprintf("%s%s, %d ranks, rank %d calls %v(%d, root %d), the others %v(%d, root %d)",
							cfg.Transport, cfg.SocketNetwork, n, odd, a, countA, rootA, b, countB, rootB)
						comms, err := ringo.OpenLocal(n, cfg)
						if err != nil {
							t.Errorf("%s: %v", name, err)
							return
						}
						began := time.Now()
						errs := commtest.Each(comms, func(c *ringo.Comm) error {
							op := collective(b, n, c.Rank(), countB, rootB)
							if c.Rank() == odd {
								op = collective(a, n, c.Rank(), countA, rootA)
							}
							if err := c.Do(op); err != nil {
								return err
							}
							return ringo.Barrier(c)
						})
						for r, c := range comms {
							for errs[r] == nil && time.Since(began) < most { // it needed nothing from the others, twice
								time.Sleep(time.Millisecond)
								errs[r] = c.Err()
							}
						}
						took := time.Since(began)
						for r, err := range errs {
							if err == nil || !strings.Contains(err.Error(), call.ErrMismatch.Error()) {
								t.Errorf("%s: rank %d: %v", name, r, err)
							} else if text := err.Error(); !names(text, a.String(), b.String()) {
								t.Errorf("%s: rank %d does not name both: %v", name, r, err)
							}
						}
						if took > most {
							t.Errorf("%s: took %v", name, took)
						}
						for _, c := range comms {
							c.Close()
						}
					})
				}
			}
		}
	}
	wg.Wait()
}

// Ranks give counts that differ by whole slots. No data are lost without an error: all ranks hear of both counts.
func TestCountsDiffer(t *testing.T) {
	t.Parallel()
	const few, many = 131_072, 262_144
	for _, cfg := range commtest.EveryTransport {
		for _, kind := range []ringo.Kind{ringo.KindAlltoAllv, ringo.KindAllGatherv, ringo.KindGatherv, ringo.KindScatterv,
			ringo.KindReduceScatterv} {
			for _, gives := range []int{few, many} {
				t.Run(fmt.Sprint(commtest.NameOf(cfg), "/", kind, "/", gives), func(t *testing.T) {
					comms := commtest.Local(t, 2, cfg)
					for _, err := range commtest.Each(comms, func(c *ringo.Comm) error {
						k := gives // of what rank 0 gives to rank 1
						if c.Rank() == 1 {
							k = few + many - gives
						}
						call := &ringo.Call{Kind: kind, Type: ringo.Int8, Op: ringo.Sum, Root: 1, InCounts: []int{5, k},
							OutCounts: []int{k, 5}}
						switch {
						case kind == ringo.KindScatterv:
							call.Root = 0
						case kind == ringo.KindAlltoAllv && c.Rank() == 0:
							call.OutCounts = []int{5, 5}
						case kind == ringo.KindAlltoAllv:
							call.InCounts = []int{5, 5}
						}
						in, out := call.Shape(c.Rank(), 2)
						call.In, call.Out = mem.Of(make([]int8, in)), mem.Of(make([]int8, out))
						if err := c.Do(call); err != nil {
							return err
						}
						return ringo.Barrier(c)
					}) {
						require.ErrorContains(t, err, call.ErrMismatch.Error())
						require.ErrorContains(t, err, fmt.Sprint(few))
						require.ErrorContains(t, err, fmt.Sprint(many))
						require.ErrorContains(t, err, kind.String())
					}
				})
			}
		}
	}
}

// names reports whether an error names both calls; or one of them and the Barrier: a rank whose own call needed nothing
// more may be in the Barrier before the others stop it.
func names(text, a, b string) bool {
	of := func(s string) bool { return strings.Contains(text, s) }
	return of(a) && of(b) || of("Barrier #2") && (of(a) || of(b))
}

// A rank waits for a message that its peer would send only after a collective, in which the peer waits for this rank.
// All ranks soon get an error, whether the Recv is alone or in a Group, and whatever the collective moves.
func TestRecvAgainstCollective(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	const n = 3
	var all sync.WaitGroup
	for i, kind := range append(slices.Clone(allCollectives), ringo.KindRecv) {
		for k, cfg := range commtest.EveryTransport {
			if !tier.Full() && i%len(commtest.EveryTransport) != k {
				continue
			}
			name, cfg := fmt.Sprintf("%v over %s", kind, commtest.NameOf(cfg)), cfg
			if kind == ringo.KindRecv {
				name = "Split over " + commtest.NameOf(cfg)
			}
			cfg.Timeout = time.Minute
			comms := commtest.Local(t, n, cfg)
			all.Go(func() {
				began := time.Now()
				errs := commtest.Each(comms, func(c *ringo.Comm) error {
					x, root := []int32{1}, 1
					if kind == ringo.KindBroadcast || kind == ringo.KindScatter {
						root = 0
					}
					switch err := error(nil); c.Rank() {
					case 0:
						if err = ringo.Recv(c, x, 1); err != nil { // receives the one message that was sent
							return err
						} else if i%2 == 0 {
							return ringo.Recv(c, x, 1)
						}
						var g ringo.Group
						g.Add(c, ringo.RecvOf(x, 1))
						g.Add(c, ringo.RecvOf([]int32{2}, 2))
						return g.Run()
					case 1:
						err = ringo.Send(c, x, 0)
						fallthrough
					default:
						if err == nil && kind == ringo.KindRecv {
							_, err = c.Split(t.Context(), 0, 0)
						} else if err == nil {
							err = c.Do(collective(kind, n, c.Rank(), 5, root))
						}
						if err == nil {
							err = ringo.Barrier(c)
						}
						return err
					}
				})
				took, text := time.Since(began), fmt.Sprint(errs)
				for r, err := range errs {
					if err == nil || !strings.Contains(err.Error(), call.ErrMismatch.Error()) ||
						!strings.Contains(err.Error(), "Send/Recv(count 1, int32)") {
						t.Errorf("%s: rank %d: %v", name, r, err)
					}
				}
				if what, _, _ := strings.Cut(name, " "); !strings.Contains(text, what) && !strings.Contains(text, "Barrier") {
					t.Errorf("%s is not named: %s", name, text)
				}
				if took > tier.Patience {
					t.Errorf("%s took %v", name, took)
				}
			})
		}
	}
	all.Wait()
}

// A Recv waits as long as its message may come: the peer is in a collective that does without this rank, or has sent
// the message and waits in a collective.
func TestRecvBeforeCollective(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	var all sync.WaitGroup
	const long = life.Slow * 3 / 2 // then ranks have said where they wait
	for _, cfg := range []ringo.Config{{Transport: "inproc"}, {Transport: "socket"}} {
		comms := commtest.Local(t, 3, cfg)
		run := func(c *ringo.Comm) error {
			x, large := []int32{1}, make([]int32, 4<<20)
			if c.Rank() == 2 {
				time.Sleep(long)
			}
			errs := []error{nil, nil, nil}
			switch c.Rank() {
			case 0:
				errs[0] = ringo.Recv(c, x, 1)
				errs[1] = ringo.Broadcast(c, x, 2)
				time.Sleep(long)
				errs[2] = ringo.Recv(c, large, 1)
			case 1:
				errs[0] = ringo.Broadcast(c, x, 2)
				errs[1] = ringo.Send(c, x, 0)
				errs[2] = ringo.Send(c, large, 0)
			case 2:
				errs[0] = ringo.Broadcast(c, x, 2)
			}
			return errors.Join(append(errs, ringo.Barrier(c))...)
		}
		all.Go(func() {
			if err := errors.Join(commtest.Each(comms, run)...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// The calls that carry out a v-variant or a Scan have its name in errors.
func TestDisagreementOfComposites(t *testing.T) {
	x, y, counts := []int32{1, 2}, make([]int32, 2), []int{1, 1}
	call := map[string]func(c *ringo.Comm, x, y []int32) error{
		"Gatherv(int32, root 0)":  func(c *ringo.Comm, x, y []int32) error { return ringo.Gatherv(c, y, x[:1], counts, 0) },
		"Gatherv(int32, root 1)":  func(c *ringo.Comm, x, y []int32) error { return ringo.Gatherv(c, y, x[:1], counts, 1) },
		"Scatterv(int32, root 1)": func(c *ringo.Comm, x, y []int32) error { return ringo.Scatterv(c, y[:1], x, counts, 1) },
		"ReduceScatterv(int32, sum)": func(c *ringo.Comm, x, y []int32) error {
			return ringo.ReduceScatterv(c, y[:1], x, counts, ringo.Sum)
		},
		"ReduceScatterv(int32, max)": func(c *ringo.Comm, x, y []int32) error {
			return ringo.ReduceScatterv(c, y[:1], x, counts, ringo.Max)
		},
		"AlltoAllv(int32)": func(c *ringo.Comm, x, y []int32) error {
			return ringo.AlltoAllv(c, y, counts, x,
				counts)
		},
		"Scan(count 2, int32, sum)": func(c *ringo.Comm, x, y []int32) error { return ringo.Scan(c, x, ringo.Sum) },
		"Scan(count 2, int32, max)": func(c *ringo.Comm, x, y []int32) error { return ringo.Scan(c, x, ringo.Max) },
		"Send/Recv(count 2, int32)": func(c *ringo.Comm, x, y []int32) error { return ringo.Recv(c, y, 0) },
	}
	for _, names := range [][2]string{
		{"ReduceScatterv(int32, sum)", "ReduceScatterv(int32, max)"},
		{"ReduceScatterv(int32, sum)", "AlltoAllv(int32)"},
		{"Gatherv(int32, root 0)", "Gatherv(int32, root 1)"},
		{"Gatherv(int32, root 0)", "Scatterv(int32, root 1)"},
		{"Gatherv(int32, root 1)", "AlltoAllv(int32)"},
		{"Scan(count 2, int32, sum)", "Scan(count 2, int32, max)"},
		{"Scan(count 2, int32, sum)", "Send/Recv(count 2, int32)"},
	} {
		t.Run(names[0]+" against "+names[1], func(t *testing.T) {
			comms := commtest.Local(t, 2, ringo.Config{Timeout: 20 * time.Second})
			errs := commtest.Each(comms, func(c *ringo.Comm) error {
				err := call[names[c.Rank()]](c, slices.Clone(x), slices.Clone(y))
				if err == nil { // it has only sent
					err = ringo.Barrier(c)
				}
				return err
			})
			text := fmt.Sprint(errs)
			for r, err := range errs {
				if !errors.Is(err, ringo.ErrMismatch) {
					require.ErrorIs(t, err, ringo.ErrPeer, "rank %d was told of it", r)
				}
			}
			for _, name := range names {
				words := strings.SplitN(name, "(", 2)
				require.Contains(t, text, words[0])
				require.Contains(t, text, "("+words[1])
			}
		})
	}
}

// TestMistakes: ranks that disagree are told so at the latest by Close.
func TestMistakes(t *testing.T) {
	commtest.TestMistakes(t, "mistake", func(t *testing.T) []*ringo.Comm { return commtest.Local(t, 2, ringo.Config{}) })
}
