package device

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
)

// The tables, to the column.
func TestTable(t *testing.T) {
	var b strings.Builder
	tb := &table{w: &b}
	r := &Report{
		Header: bench.Header{Host: "h", Cores: 2, CPU: "cpu", Go: "go1", OS: "linux", Arch: "amd64"},
		Driver: Driver{"cuda", 12040}, GPU: GPU{Name: "X", Capability: "9.0", SMs: 132, Memory: 80<<30 + 5, L2: 60 << 20,
			ClockKHz: 1980000}, Notes: []string{"a note"},
	}
	tb.preamble(r)
	tb.bandwidths()
	tb.row(&Row{What: "copy", Sources: 1, Size: 1 << 20, Time: Time{Median: 1.5, Min: 1.25}, Bandwidth: 1398.1})
	tb.row(&Row{What: "combine", Type: "float32", Op: "sum", Sources: 8, Size: 48, Time: Time{Median: 2, Min: 1},
		Bandwidth: 0.2, OfCopy: 0.875, Wrong: 3})
	tb.launches([]Launch{{From: "go", Params: 112, Nanosecs: 2000, Min: 1900, Difference: 12},
		{From: "c", Params: 112, Nanosecs: 1988, Min: 1880}})
	tb.firstUses([]FirstUse{{Type: "int8", Op: "max", Cache: "cold", Load: 10, Run: 0.5, Total: 10.5}})
	tb.texts(&Texts{Modules: 3, Embedded: 100, Bytes: 1000, Largest: 500})
	require.Equal(t, `# X, compute capability 9.0, 132 multiprocessors at 1980 MHz, 80G of memory, 60M of L2; driver cuda of CUDA 12.4
# on h (2 cores, cpu), go1 linux/amd64
# a note
#
#   size  what     type        op           sources    time (us)     min (us)      GB/s  of copy  wrong
      1M  copy     -           -                  1         1.50         1.25    1398.1        -      0
      48  combine  float32     sum                8         2.00         1.00       0.2   87.5 %      3
#
#launch  parameters    time (ns)     min (ns)    over C (ns)
     go         112         2000         1900            +12
      c         112         1988         1880              -
#
# first use, in milliseconds
# cache  type        op                load       run     total
   cold  int8        max              10.00      0.50     10.50
#
# PTX: 3 modules, 100 bytes in the program; 1000 bytes of text, at most 500 in one
`, b.String())
	require.EqualError(t, &WrongError{7}, "7 bytes of results differ from those of the Go arithmetic")
	r.Rows = []Row{{Wrong: 3}, {Wrong: 4}}
	require.EqualValues(t, 7, r.wrong())
	r.Notes = nil
	r.note(Config{Repetitions: 5})
	r.Driver.Name = "emu"
	r.note(Config{Repetitions: 5})
	require.Equal(t, []string{"medians of 5 repetitions; bandwidth counts reads and writes",
		"emulated: results are real, times mean nothing", "medians of 5 repetitions; bandwidth counts reads and writes"},
		r.Notes)
}

// A fakeMemory is a driver of one allocation.
type fakeMemory struct {
	cuda.Driver
	base uintptr
	b    []byte
}

func (m *fakeMemory) MemAlloc(n int) (uintptr, error) {
	m.b = make([]byte, n)
	return m.base, nil
}

func (m *fakeMemory) at(p uintptr, n int) []byte { return m.b[p-m.base:][:n:n] }

func (m *fakeMemory) MemcpyHtoD(dst uintptr, src []byte) error {
	copy(m.at(dst, len(src)), src)
	return nil
}

func (m *fakeMemory) MemcpyDtoH(dst []byte, src uintptr) error {
	copy(dst, m.at(src, len(dst)))
	return nil
}

func (m *fakeMemory) MemsetD8(dst uintptr, v byte, n int) error {
	for i := range m.at(dst, n) {
		m.at(dst, n)[i] = v
	}
	return nil
}

// fill writes all of each source; compare looks at all of a short result, and at three stretches of a long one.
func TestCompare(t *testing.T) {
	d := &fakeMemory{base: 1 << 20}
	for _, c := range []struct {
		size    int64
		checked int64
	}{{4096, 4096}, {sampleBytes, sampleBytes}, {sampleBytes + 4096, 3 * sampleBytes}} {
		p, err := newPool(d, 0, 3*int(c.size))
		require.NoError(t, err)
		sets := p.cut(2, c.size, 1)
		require.Len(t, sets, 1)
		block := randomBlock(kernels.Uint8, 4096)
		require.NoError(t, p.fill(sets, block))
		require.NoError(t, p.poison(sets))
		got := make([]byte, 2*4096)[:min(2*4096, int(c.size))]
		for i, shift := range []int{0, 1016} {
			require.NoError(t, d.MemcpyDtoH(got, sets[0].srcs[i].Ptr()))
			for k := range got {
				want := block[(k+shift)%len(block)]
				require.Equal(t, want, got[k], "source %d, byte %d", i, k)
			}
		}
		checked, wrong, err := p.compare(sets, func(dst []byte, srcs [][]byte) {
			require.Len(t, srcs, 2)
			for i := range dst {
				dst[i] = 0xA5
			}
			dst[5] = 0
		})
		require.NoError(t, err)
		require.Equal(t, c.checked, checked)
		require.Equal(t, c.checked/min(c.size, sampleBytes), wrong, "a byte of each stretch")
	}
}
