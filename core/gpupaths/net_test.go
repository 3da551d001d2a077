// What a Net says and does, by paths that the tests set.

package gpupaths

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// The shapes of queues, which each rank works out for itself: ranks of any two versions must find the same.
func TestShapes(t *testing.T) {
	var b strings.Builder
	shape := func(g grid.Geometry) string {
		return fmt.Sprintf("%d lanes, %d slots of %d, notes %d", g.Lanes, g.Slots, g.SlotBytes, g.NoteBytes)
	}
	for _, hosts := range []string{"a", "aa", "aaaa", "aaaaaaaa", strings.Repeat("a", 16), "aabb", "aaabb", "abcd",
		strings.Repeat("abcdefgh", 8)} {
		h := hostsOf(ranksOn(hosts))
		closest, others := h.across()
		fmt.Fprintf(&b, "%s: %d to %d ranks a host, %d columns, close to %d, not to %d\n", hosts, h.least(), h.most(),
			h.columns, closest, others)
		for _, x := range [][2]int{{128, 128}, {128, 8}, {16, 128}, {4, 1}} {
			g := geometryOf(&h, x[0], x[1])
			fmt.Fprintf(&b, "  %d cores, %d blocks: bridges %s; far %s\n", x[0], x[1], shape(g.near), shape(g.far))
			for n := range 17 {
				if o, ok := g.boards[n]; ok {
					fmt.Fprintf(&b, "    %d ranks: on GPUs near %s; far %s; mail %d\n", n, shape(o.device.Near), shape(o.device.Far),
						o.device.MailBytes)
					fmt.Fprintf(&b, "      pinned near %s; far %s; mail %d, torn %v\n", shape(o.pinned.Near), shape(o.pinned.Far),
						o.pinned.MailBytes, o.pinned.Torn)
				}
			}
		}
	}
	const file = "testdata/shapes.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// netOf is the Net of rank 0 of ranks on hosts, a letter each. paths are from rank 0 to the others; other pairs have
// P2P.
func netOf(hosts string, paths ...transport.GPUPath) *Net {
	all := ranksOn(hosts)
	for r := range all {
		all[r].GPUID, all[r].GPU = fmt.Sprint(r), "GPU"
	}
	n := &Net{pairs: pairs{size: len(all)}, host: pathsOf(all), hosts: hostsOf(all)}
	n.paths, n.against, n.links = make([]transport.GPUPath, n.size*n.size), make([]string, n.size*n.size),
		make([]cuda.Link, n.size*n.size)
	n.geometry = geometryOf(&n.hosts, 16, 128)
	n.boards = n.geometry.boards[len(n.hosts.of(0))]
	n.ownMemory = n.device
	for _, i := range n.indices() {
		n.paths[i], n.links[i] = transport.OverP2P, cuda.NVLink
	}
	for i, p := range paths {
		n.set(0, i+1, p, "why")
	}
	return n
}

func pathsOf(all []paths.Profile) *paths.Net { return &paths.Net{Profiles: all} }

func (n *Net) set(a, b int, p transport.GPUPath, against string) {
	i := n.pair(a, b)
	n.paths[i], n.against[i], n.links[i] = p, against, cuda.NoLink
	if p == transport.OverPCIe {
		n.links[i], n.against[i] = cuda.PCIe, ""
	}
}

// What is said of the paths to other ranks.
func TestNotes(t *testing.T) {
	n := netOf("aaaaa", transport.OverP2P, transport.OverPCIe, transport.OverHost, transport.OverHost)
	n.links[n.pair(0, 1)] = cuda.NVLink
	n.against[n.pair(0, 1)] = ""
	require.Equal(t, []string{
		"GPU memory: p2p with rank 1 (NVLink)",
		"GPU memory: pcie with rank 2 (PCIe: lines of 128 bytes may tear there, so they have digests)",
		"GPU memory: host memory with ranks 3, 4 (why)",
	}, n.Notes())
	n.forced = "1"
	require.Equal(t, "PCIe: lines of 128 bytes may tear; RINGO_LINES=1 takes them as they come", n.about(2))
	require.Equal(t, "NVLink", n.about(1))
	n.forced = "0"
	require.Equal(t, "NVLink: no lines of 128 bytes, RINGO_LINES=0", n.about(1))
	require.Equal(t, "PCIe: no lines of 128 bytes, RINGO_LINES=0", n.about(2))
	for peer, want := range map[int]string{-1: "", 0: "", 1: "p2p", 2: "pcie", 3: "host memory", 5: ""} {
		require.Equal(t, want, n.Via(peer), peer)
	}
	require.Equal(t, []string{"GPU memory: p2p"}, netOf("a").Notes())

	n = netOf("aa")
	n.links[n.pair(0, 1)] = cuda.SameGPU
	n.host.Profiles[1].GPUID = "0"
	n.budget = choice.Budget{Most: 127, Least: 4, Policy: choice.PolicyEfficiency}
	require.Equal(t, []string{
		"GPU memory: p2p with rank 1 (the same GPU)",
		"GPU memory: kernels of up to 127 blocks, this communicator's share of the GPU (RINGO_MAX_CTAS)",
		fmt.Sprintf("GPU memory: kernels of at least 4 blocks where there is work for them (RINGO_MIN_CTAS), policy %v "+
			"(RINGO_CTA_POLICY)", choice.PolicyEfficiency),
		"GPU memory: up to 2 ranks share a GPU, each with a part of its multiprocessors; those of different processes take " +
			"turns",
	}, n.Notes())
	require.True(t, n.Shared())
	n.budget.Least = 0
	require.Contains(t, n.Notes()[2], "kernels of at least 1 blocks")
	n.budget = choice.Budget{Most: 128, Narrow: true}
	require.Contains(t, n.Notes(),
		"GPU memory: schedules of up to 64 lanes, for GPUs that compute beside them; RINGO_CTA_POLICY=latency has more")
}

// Where the slots of a bridge lie, in words.
func TestAboutSlots(t *testing.T) {
	s := bridgeSlots{placed: map[int]bool{1: true}, notGPU: map[int]string{1: "too far"},
		copies: map[int]string{2: "they are smaller"}, onGPU: map[int]int{}}
	require.Equal(t, "slots in pinned memory, without copies; not on the GPU: too far", s.about(1))
	require.Equal(t, "slots are copied: they are smaller", s.about(2))
	require.Empty(t, s.about(3))
	require.Zero(t, s.bytes())
	require.NoError(t, s.close())

	n := netOf("ab", transport.OverBridge)
	n.bridge = &bridgeNet{slots: s}
	require.Equal(t, "why; slots in pinned memory, without copies; not on the GPU: too far", n.about(1))
	n.bridge.slots.placed = nil
	require.Equal(t, "why", n.about(1))
}

// What holds for all pairs decides which kernels there are.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name                 string
		paths                []transport.GPUPath
		forced               string
		near, far            transport.GPUPath
		apart                string
		lines, gates, signs  bool
		ownLines, otherLines bool
	}{
		{"NVLink", nil, "", transport.OverP2P, transport.OverP2P, "", true, true, true, true, true},
		{"NVLink without lines", nil, "0", transport.OverP2P, transport.OverP2P, "", false, true, true, false, false},
		{"PCIe", []transport.GPUPath{transport.OverPCIe, transport.OverP2P}, "", transport.OverP2P, transport.OverPCIe, "",
			false, true, true, true, false},
		{"PCIe, lines as they come", []transport.GPUPath{transport.OverPCIe, transport.OverP2P}, "1", transport.OverP2P,
			transport.OverPCIe, "", true, true, true, true, true},
		{"one by host memory", []transport.GPUPath{transport.OverHost, transport.OverP2P}, "1", transport.OverP2P,
			transport.OverHost, "0 and 1: why", false, false, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := netOf("aaa", c.paths...)
			n.forced = c.forced
			n.near = hostLinks{n.device.Links(0, []uint64{1 << 20, 2 << 20, 3 << 20}), &n.hosts}
			n.own = n.near
			f := n.Fabric(choice.TopologyOf([]string{"a", "a", "a"}))
			require.Equal(t, []transport.GPUPath{c.near, c.far}, []transport.GPUPath{f.Near, f.Far})
			require.Equal(t, []string{"GPU", "GPU", "GPU"}, f.GPUs)
			a, b, why, ok := n.Apart()
			require.Equal(t, c.apart != "", ok)
			if ok {
				require.Equal(t, c.apart, fmt.Sprintf("%d and %d: %s", a, b, why))
			}
			require.Equal(t, c.lines, n.all(n.lines))
			require.Equal(t, c.gates, n.Gates() != nil)
			require.Equal(t, c.signs, n.Signs() != nil)
			require.Equal(t, c.ownLines, n.lines(1, 1))
			require.Equal(t, c.otherLines, n.lines(0, 1))
			at, bytes, torn := n.Mail()
			require.Equal(t, c.gates && c.forced != "0", at != nil)
			require.Equal(t, at != nil, bytes > 0)
			require.Equal(t, at != nil && !c.lines, at != nil && torn)
			notes := n.Geometry(0, 1).NoteBytes
			require.Equal(t, c.otherLines, notes > 0)
			_, err := n.Send(3)
			require.EqualError(t, err, "rank 3: there are 3")
			_, err = n.Recv(-1)
			require.EqualError(t, err, "rank -1: there are 3")
			for peer := range sched.Rank(3) {
				if c.paths != nil && c.paths[0] == transport.OverHost && peer == 1 {
					continue
				}
				out, err := n.Send(peer)
				require.NoError(t, err)
				require.Equal(t, n.Geometry(0, peer), out.Geometry)
				in, err := n.Recv(peer)
				require.NoError(t, err)
				require.Equal(t, n.Geometry(peer, 0), in.Geometry)
				require.NotZero(t, out.Queues)
				require.NotZero(t, in.Queues)
			}
		})
	}
	n := netOf("aa", transport.NoPath)
	_, err := n.Send(1)
	require.EqualError(t, err, "no path to rank 1")
	require.False(t, n.uses(transport.OverP2P))
	require.True(t, n.uses(transport.NoPath))
	at, bytes, torn := netOf("a").Mail()
	require.True(t, at == nil && bytes == 0 && !torn)

	n = netOf("aaa", transport.OverHost, transport.OverHost)
	n.set(1, 2, transport.OverHost, "")
	n.pinned = hostLinks{n.boards.pinned.Links(0, []uint64{1 << 20, 2 << 20, 3 << 20}), &n.hosts}
	at, bytes, torn = n.Mail()
	require.Len(t, at, 3)
	require.Positive(t, bytes)
	require.True(t, torn)
	require.NotNil(t, n.Signs())
	require.Equal(t, n.boards.pinned.Geometry(0, 1), n.Geometry(0, 1))
	require.Equal(t, n.device.Geometry(0, 0), n.Geometry(0, 0))
	n = netOf("ab", transport.OverBridge)
	require.Equal(t, n.geometry.near, n.Geometry(0, 1))
}

// A pair has a path that both of its ranks could open, and else says why, once.
func TestTry(t *testing.T) {
	const size = 4
	groups := bootstrap.Local(size)
	nets := make([]*Net, size)
	var wg sync.WaitGroup
	var mu sync.Mutex
	opened := map[string]int{}
	for r, g := range groups {
		n := netOf("aaaa")
		n.rank, n.group = r, g
		for _, i := range n.indices() {
			n.paths[i], n.against[i] = transport.NoPath, ""
		}
		n.paths[n.pair(2, 3)] = transport.OverP2P
		n.against[n.pair(0, 3)] = "no such link"
		nets[r] = n
		wg.Go(func() {
			for range 2 {
				words, err := n.try(context.Background(), transport.OverHost, fmt.Sprint("word ", r),
					func(a, b int) error {
						if a == 0 && b == 3 {
							return errors.New("p2p: other hosts")
						}
						return nil
					}, func(peer int) error {
						mu.Lock()
						opened[fmt.Sprintf("%d%d", r, peer)]++
						mu.Unlock()
						if r == 2 && peer == 1 {
							return errors.New("p2p: no room")
						}
						return nil
					})
				if err != nil || strings.Join(words, ",") != "word 0,word 1,word 2,word 3" {
					t.Error(words, err)
				}
			}
		})
	}
	wg.Wait()
	for _, n := range nets {
		for pair, want := range map[[2]int]transport.GPUPath{{0, 1}: transport.OverHost, {0, 2}: transport.OverHost,
			{1, 3}: transport.OverHost, {1, 2}: transport.NoPath, {0, 3}: transport.NoPath, {2, 3}: transport.OverP2P} {
			require.Equal(t, want, n.path(pair[0], pair[1]), pair)
		}
		require.Equal(t, "no room", n.against[n.pair(2, 1)])
		require.Equal(t, "no such link; other hosts", n.against[n.pair(3, 0)])
	}
	require.Equal(t, map[string]int{"01": 1, "10": 1, "02": 1, "20": 1, "13": 1, "31": 1, "12": 2, "21": 2}, opened)
	for _, g := range groups {
		g.Close()
	}
}

// Who asks to hear of a broken bridge hears of it, also afterwards.
func TestBroken(t *testing.T) {
	n := netOf("aa")
	heard := 0
	n.OnBroken(func() { heard++ })
	require.Zero(t, heard)
	require.Nil(t, n.Broken())
	n.broken.Store(&engine.StepError{Peer: 1})
	n.OnBroken(func() { heard += 10 })
	require.Equal(t, 10, heard)
	require.EqualValues(t, 1, n.Broken().Peer)
	n.Wake()
	n.Vigilant(true)
	n.Stop(errors.New("nothing is there"))
	require.NoError(t, errors.Join(n.Close(true), n.Suspend(), n.Resume()))
	require.Zero(t, n.Fixed()+n.Mapped())
}

// A new quota leaves the least quotas for the communicators that may still come, also on small GPUs.
func TestQuotaOfRanks(t *testing.T) {
	for holdings, want := range map[[2]int]int{{264, 0}: 128, {264, 1}: 40, {264, 7}: 16, {16, 0}: 9, {16, 7}: 1,
		{1, 0}: 1} {
		a := account{capacity: holdings[0], open: map[string]*holding{}}
		for i := range holdings[1] {
			a.open[fmt.Sprint(i)] = &holding{1, a.next()}
		}
		require.Equal(t, want, a.next(), "%v", holdings)
	}
}
