package tune

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
)

// measured is a tuning of two ranks with times as they might come: ring for small sizes, direct for large ones, window
// for large registered memory; logstep cannot serve the last size.
func measured(c *Config) *tuning {
	coll, err := bench.Find("allgather")
	if err != nil {
		panic(err)
	}
	c.Type = ringo.BFloat16
	c.Collectives = []bench.Collective{coll}
	return &tuning{cfg: c, ranks: 2, gpu: "GPU X", driver: "1.2", path: "p2p", curves: []curve{{
		Collective: coll, counts: []int{2, 4, 8, 16}, sizes: []int64{8, 16, 32, 64}, asked: []int64{8, 17, 32, 64},
		algos: []string{"ring", "direct", "logstep", "window"}, registered: 3,
		us: [][]float64{{1, 2, 3, 4}, {1, 2, 3, 4}, {8, 4, 9, 2}, {8, 4, inf, 2}},
	}}}
}

func TestTables(t *testing.T) {
	var b bytes.Buffer
	c := &Config{Graph: 20, Table: &b}
	measured(c).print()
	require.Equal(t, `
# allgather, bfloat16, graphs of 20, out of place, us; * chosen, + chosen for registered memory
#   size (B)        ring      direct     logstep      window
           8       1.00*       2.00        3.00        4.00 
          16       1.00*       2.00        3.00        4.00 
          32       8.00        4.00*       9.00        2.00+
          64       8.00        4.00*          -        2.00+
`, b.String(), "no times with fewer blocks, no such table")
}

// The rows of a plan end at the size that was asked for, the last has no end, and registered memory has rows where they
// differ.
func TestRows(t *testing.T) {
	c := &Config{}
	tuned := measured(c)
	row := func(registered bool, upTo int64, algo string) ringo.PlanRow {
		return ringo.PlanRow{Kind: ringo.KindAllGather, From: 2, To: 2, Registered: registered, UpTo: upTo, Algo: algo}
	}
	require.Equal(t, []ringo.PlanRow{row(true, 17, "ring"), row(true, -1, "window"), row(false, 17, "ring"),
		row(false, -1, "direct")}, tuned.curves[0].rows(c, 2))
	for j := range tuned.curves[0].us {
		tuned.curves[0].us[j][3] = inf
	}
	tuned.curves[0].sizes[1] = 18
	require.Equal(t, []ringo.PlanRow{row(false, 18, "ring"), row(false, -1, "direct")}, tuned.curves[0].rows(c, 2),
		"a size that was rounded up")
	p := tuned.plan()
	require.Equal(t, []string{"2 × GPU X", "1.2", "GPU X", "p2p"},
		[]string{p.Machine, p.Driver, strings.Join(p.GPUs, ","), p.Path})
	require.Equal(t, []string{"ring", "direct"}, tuned.algorithmsOf("direct", "ring"))
}

// algorithmsOf is the list of algorithms of a tuning whose one curve has these.
func (t *tuning) algorithmsOf(algos ...string) []string {
	t.curves = []curve{{algos: algos}, {}}
	return t.algorithms()
}

// Fewer blocks are tried where the plan takes an algorithm, it has been measured, and there is work for more than the
// fewest.
func TestChoose(t *testing.T) {
	c := &Config{Blocks: []int{2, 1 << 20}}
	tuned := measured(c)
	k := &tuned.curves[0]
	k.counts = []int{1, 1, 1 << 24, 1 << 24}
	tuned.gpu = "NVIDIA H200"
	k.us[3][3], k.us[3][1] = inf, inf
	k.us[3][0] = 40
	tuned.path = "no such path" // work for any number
	k.choose(tuned)
	require.Equal(t, [][]int{{math.MaxInt, 0, 0, 0}, {math.MaxInt, 0, 0, 0}, {0, math.MaxInt, 0, math.MaxInt},
		{math.MaxInt, 0, 0, 0}}, k.work)
	require.Equal(t, []float64{inf, inf}, k.less[2][3], "until they are measured")
	require.Nil(t, k.less[2][2])

	tuned.path = "p2p"
	k.choose(tuned)
	require.Greater(t, k.work[2][1], 2)
	require.Equal(t, []float64{inf, k.us[2][1]}, k.less[2][1], "more blocks than there is work for are as quick")
	c.Blocks = []int{k.work[2][1]}
	k.choose(tuned)
	require.Zero(t, k.work[2][1], "not fewer than there is work for")
	require.Nil(t, k.less[2][1])
}

// A file keeps its rows of other ranks and of other collectives; one for other GPUs or another path stays as it is.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	c := &Config{Table: &b}
	tuned := measured(c)
	require.NoError(t, tuned.write())
	require.Equal(t, "\n"+tuned.plan().String()+"\n# -o FILE writes this plan, RINGO_PLAN=FILE or Config.Plan uses it\n",
		b.String())
	b.Reset()
	c.Out = filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, tuned.write())
	require.Equal(t, "\n# "+c.Out+": 4 rows; RINGO_PLAN="+c.Out+" or Config.Plan uses them\n", b.String())
	rows := func() (list []string) {
		p, err := c.before()
		require.NoError(t, err)
		for _, r := range p.Rows {
			list = append(list, strings.Join(strings.Fields(r.String()), " "))
		}
		return list
	}
	first := rows()
	require.Len(t, first, 4)
	require.NoError(t, tuned.write())
	require.Equal(t, first, rows(), "the same rows are not there twice")
	tuned.ranks = 3
	require.NoError(t, tuned.write())
	require.Len(t, rows(), 8, "of two and of three ranks")
	tuned.ranks = 2
	other, err := bench.Find("allreduce")
	require.NoError(t, err)
	tuned.curves[0].algos[1], tuned.curves[0].algos[2] = "tree", "twotrees"
	c.Collectives, tuned.curves[0].Collective = []bench.Collective{other}, other
	require.NoError(t, tuned.write())
	require.Len(t, rows(), 12, "of two collectives")
	require.Subset(t, rows(), first)

	before := rows()
	tuned.path = "host memory"
	require.EqualError(t, tuned.write(),
		"-o "+c.Out+": the file is for GPU X, p2p, but this is GPU X, host memory: name another one")
	tuned.path, tuned.gpu = "p2p", "GPU Y"
	require.EqualError(t, tuned.write(),
		"-o "+c.Out+": the file is for GPU X, p2p, but this is GPU Y, p2p: name another one")
	require.Equal(t, before, rows())
}

func TestOptions(t *testing.T) {
	c := &Config{Transport: "auto"}
	require.Equal(t, ringo.Config{Algo: "ring", Timeout: 30 * time.Second, BlockPolicy: "latency"}, c.options("ring", 0))
	c.Transport = "shm"
	require.Equal(t, ringo.Config{Transport: "shm", Timeout: 30 * time.Second, BlockPolicy: "latency", MaxBlocks: 8,
		MinBlocks: 1}, c.options("", 8))
	n, err := GPUs("emu")
	require.NoError(t, err)
	require.Equal(t, 4, n)
}

// shareTimes gives all processes the times of the first process.
func TestShareTimes(t *testing.T) {
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	require.NoError(t, err)
	here, there := measured(&Config{}), measured(&Config{})
	for _, row := range there.curves[0].us {
		for i := range row {
			row[i] = 77
		}
	}
	errs := make(chan error, 2)
	for i, tuned := range []*tuning{here, there} {
		go func() { errs <- tuned.shareTimes(comms[i : i+1]) }()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	require.Equal(t, measured(&Config{}).curves[0].us, here.curves[0].us)
	require.Equal(t, here.curves[0].us, there.curves[0].us)
	for _, c := range comms {
		go func() { errs <- c.Close() }()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
}
