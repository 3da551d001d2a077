package ptxcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// text is a file of testdata.
func text(t testing.TB, name string) []byte {
	b := must.Get(os.ReadFile("testdata/" + name))
	return b
}

// handoff is a case of two GPUs that hand a number over, with a race; see testdata.
func handoff(t testing.TB) Case {
	return Case{
		Name: "handoff.ptx", Text: text(t, "handoff.ptx"), GPUs: 2, Seeds: 20,
		Buffers:  []string{"box=u32[1]", "flag=u32[1]:0", "out=u32[1]"},
		Launches: []Launch{{Args: []string{"box", "flag", "box@((rank+1)%gpus)", "flag@((rank+1)%gpus)", "out", "rank+1"}}},
		Wants:    []string{"out=3"},
	}
}

func check(t testing.TB, c Case) *Report {
	r := must.Get(Run(context.Background(), c))
	require.Equal(t, Version, r.Version)
	return r
}

// manySeeds is how many seeds must find nothing before a test takes a kernel for right.
func manySeeds() int {
	if tier.Race {
		return 20
	}
	return tier.Count(100, 1000)
}

func TestRaceAcrossGPUs(t *testing.T) {
	c := handoff(t)
	r := check(t, c)
	require.Equal(t, c.Seeds, r.Ran)
	f := r.Findings[0]
	require.Equal(t, Race, f.Kind)
	require.Equal(t, "GPUs", f.Across)
	require.Equal(t, c.Seeds, f.Seeds, "whatever the order was")
	require.Equal(t, "handoff.cu:10", f.Access.Source)
	require.Equal(t, "handoff.cu:7", f.Other.Source)
	require.Equal(t, "ld.global.u32 %r3, [%rd0]", f.Access.Instruction)
	require.NotEqual(t, f.Access.GPU, f.Other.GPU)
	require.True(t, f.Other.Write)
	require.False(t, f.Access.Write)
	require.Regexp(t, `^box@[01]$`, f.Access.Address)
	require.NotEmpty(t, f.Schedule.Turns)
	require.LessOrEqual(t, len(f.Schedule.Turns), 3)
	require.LessOrEqual(t, f.Schedule.Steps, 30)

	require.ErrorContains(t, r.Err(),
		"handoff.ptx: 2 findings\n1. race between GPUs, found under 20 of 20 seeds\n   load of 4 bytes from box@")

	again := check(t, c)
	require.Equal(t, r, again, "the same seeds, the same report")

	var s bytes.Buffer
	require.NoError(t, json.NewEncoder(&s).Encode(r))
	back := new(Report)
	require.NoError(t, json.Unmarshal(s.Bytes(), back))
	require.Equal(t, r, back)
}

// TestNothingFound: handoff with a store that releases has no race.
func TestNothingFound(t *testing.T) {
	c := handoff(t)
	c.Seeds = manySeeds()
	c.Text = bytes.Replace(c.Text, []byte("st.relaxed.sys"), []byte("st.release.sys"), 1)
	for _, link := range []string{"nvlink", "pcie"} {
		c.Link = link
		require.NoError(t, check(t, c).Err())
	}
	c.Wants = []string{"out@1=4"}
	r := check(t, c)
	require.Len(t, r.Findings, 1)
	require.Equal(t, WrongResult, r.Findings[0].Kind)
	require.Equal(t, "out@1[0] is 3, want 4", r.Findings[0].Detail)
	require.Equal(t, c.Seeds, r.Findings[0].Seeds)
	require.Empty(t, r.Findings[0].Schedule.Turns)

	c.Link, c.Seeds = "none", 1
	r = check(t, c)
	require.Equal(t, NoAccess, r.Findings[0].Kind)
}

// The end of a context ends a run, and what was found until then is reported.
func TestContext(t *testing.T) {
	c := handoff(t)
	// The reader's loop now never ends.
	c.Text = []byte(strings.Replace(string(c.Text), "ld.acquire.sys.global.u32 %r2, [%rd1];", "mov.u32 %r2, 0;", 1))
	c.Instructions = 1 << 50
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	r, err := Run(ctx, c)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, r.Ran)

	c.Instructions = 10_000
	r = check(t, c)
	require.Equal(t, enoughHalts, r.Ran)
	require.ErrorContains(t, r.Err(), "3 of 20 seeds were enough: 3 runs came to a halt\n")
	f := r.Findings[len(r.Findings)-1]
	require.Equal(t, Endless, f.Kind)
	require.Contains(t, f.Detail, "it has not ended after 10000 instructions of all threads")
	require.Regexp(t, `thread \(0,0,0\), handoff.cu:(9|10), line [0-9]+: runs`, f.Detail)
}
