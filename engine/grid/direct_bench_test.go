package grid

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
)

// What TestDirectShapes measures, as lists with commas; sizes end in K, M or G.
var (
	directFlag   = flag.String("direct", "", "measure these direct operations in graphs, over shapes of grids")
	directRanks  = flag.String("ranks", "4", "numbers of ranks")
	directSizes  = flag.String("dsizes", "8,1K,8K,64K,256K,1M,4M", "bytes of a direct operation: of the longest buffer")
	directType   = flag.String("dtype", "bfloat16", "data type")
	directBlocks = flag.String("blocks", "1,2,4,8,16,32,64,96,128", "blocks; 0: as the table says")
	directWidths = flag.String("widths", "32,64,128,256,512", "threads of a block")
	directMail   = flag.String("mail", "8M", "bytes of mailboxes")
)

// TestDirectShapes measures on GPUs, a rank each:
//
//	REQUIRE=cuda go test -run TestDirectShapes -direct twoshot,oneshot
func TestDirectShapes(t *testing.T) {
	if *directFlag == "" {
		t.Skip("-direct measures on GPUs")
	}
	onMailboxes(t, 4, func(r *rig, about string) {
		for _, name := range strings.Split(*directFlag, ",") {
			for _, size := range sizes(*directSizes) {
				fmt.Printf("%s %s %9d:%s\n", about, name, size, r.shapes(named(t, name), size))
			}
		}
	})
}

// onMailboxes calls f with the ranks of each folder of kernels, number of ranks and size of mailboxes that the flags
// want, on GPUs, or on so many emulated ones.
func onMailboxes(t *testing.T, emulate int, f func(r *rig, about string)) {
	d := emulated(t, emulate, cudaemu.Config{Plain: true})
	for _, folder := range strings.Split(*ptxFolders, ",") {
		for _, n := range sizes(*directRanks) {
			for _, mail := range sizes(*directMail) {
				board := DefaultBoard(n)
				board.MailBytes = mail
				board.Near = Geometry{Lanes: 2, Slots: 4, SlotBytes: 256}
				board.Far = board.Near
				r := newRig(t, d, board, Options{Ranks: n})
				for _, m := range r.ranks {
					m.engine.text = textOf(folder)
				}
				f(r, fmt.Sprintf("%s %d ranks mail %dM", folder, n, mail>>20))
				r.close()
			}
		}
	}
}

// shapes measures an operation over shapes of its grid, the best first.
func (r *rig) shapes(d Direct, size int) (line string) {
	type result struct {
		µs              float64
		blocks, threads int
	}
	n := len(r.ranks)
	bytes := size
	if d != OneShot && d != TwoShot && d != Reduce && d != Broadcast {
		bytes = max(2, size/n)
	}
	part := bytes
	if d == TwoShot {
		part /= n
	}
	lines := max(1, (part+lineData-1)/lineData)
	var all []result
	for _, b := range sizes(*directBlocks) {
		for _, th := range sizes(*directWidths) {
			if it := float64(lines) / float64(b*th/lineLanes); b > 0 && (it > 24 || it < 0.4 && b*th > 32) {
				continue
			}
			for _, m := range r.ranks {
				m.engine.mail.tune = func(Direct, int, int) (int, int) { return b, th }
				if b == 0 {
					m.engine.mail.tune = collective.DirectShape
				}
			}
			all = append(all, result{r.time(d, bytes), b, th})
		}
	}
	slices.SortFunc(all, func(x, y result) int { return cmp.Compare(x.µs, y.µs) })
	for _, x := range all[:min(5, len(all))] {
		line += fmt.Sprintf("  %.2f (%dx%d)", x.µs, x.blocks, x.threads)
	}
	return line
}

// time is the time of an operation in a graph that holds some, in µs.
func (r *rig) time(d Direct, bytes int) float64 {
	t, n := r.t, len(r.ranks)
	dt, err := kernels.ParseType(*directType)
	require.NoError(t, err)
	var red *kernels.Reducer
	if d.Reduces() {
		red, err = kernels.NewReducer(dt, kernels.Sum, n)
		require.NoError(t, err)
	}
	reps := max(4, min(50, 256<<20/max(1, bytes)))
	if !gputest.OnGPU() {
		reps = 1
	}
	x := directTrial{d: d, count: bytes}
	return r.timeGraphs(reps, func(i int, m *member) func() error {
		inN, outN, _, _ := x.elements(i, n)
		m.roomToMeasure(r)
		begin := time.Now()
		require.NoError(t, m.engine.PrepareDirect(red))
		if i == 0 && !r.told {
			r.told = true
			fmt.Printf("loaded in %v\n", time.Since(begin).Round(time.Millisecond))
		}
		j := Job{
			Reducer: red, Stamp: [2]uint64{1 << 32, 2}, Stream: m.stream,
			In: mem.Device(int(m.dev), m.scratch[0], inN), Out: mem.Device(int(m.dev), m.scratch[1], outN),
		}
		return func() error { return m.engine.RunDirect(&j, d, 0, bytes) }
	})
}

const maxScratch = 64 << 20

func named(t *testing.T, name string) Direct {
	all := collective.All()
	i := slices.IndexFunc(all, func(d Direct) bool { return d.String() == name })
	require.GreaterOrEqual(t, i, 0, "there is no %s", name)
	return all[i]
}
