package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

// setupOf is the setup in the page that "ringo play" writes.
func setupOf(t *testing.T, args ...string) string {
	file := filepath.Join(t.TempDir(), "page.html")
	code, out, stderr := ringoHere(append([]string{"play", "-o", file}, args...)...)
	require.Zero(t, code, stderr)
	require.Contains(t, out, file)
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(page), "{{")
	_, setup, _ := strings.Cut(string(page), `id="setup">`)
	setup, _, _ = strings.Cut(setup, "</script>")
	return setup
}

func TestPlay(t *testing.T) {
	require.Contains(t, setupOf(t),
		`{"algo":"ring","bytes":1048576,"collective":"allreduce","net":"shm","node":0,"ranks":8,"root":0}`)
	require.Contains(t, setupOf(t, "broadcast", "-np", "12", "-algo", "hier", "-node", "4", "-r", "3", "-net", "ndr"),
		`"node":4,"ranks":12,"root":3`)
	none := filepath.Join(t.TempDir(), "none")
	for wrong, why := range map[string]string{
		"-np 65":           "-np 65: want 2 to 64",
		"-np 8 -algo hier": "hier needs nodes",
		"-algo rings":      `unknown algorithm of allreduce "rings"`,
		"barrier":          `unknown collective "barrier"`,
		"reduce gather":    "one collective at a time",
		"reduce -r 8":      "root 8 is none of the 8 ranks",
		"-net wet":         `unknown net "wet"`,
		"-o NONE/page.htm": "no such file",
	} {
		args := append([]string{"play"}, strings.Fields(wrong)...)
		args[len(args)-1] = strings.Replace(args[len(args)-1], "NONE", none, 1)
		code, _, stderr := ringoHere(args...)
		require.NotZero(t, code, wrong)
		require.Contains(t, stderr, why)
	}
}

// A program's own algorithm is in its page, as tables for each number of ranks that the algorithm allows.
func TestPlayOwn(t *testing.T) {
	require.NoError(t, ringo.Define(ringo.Definition{
		Name: "evenly", Kind: ringo.KindScatter, Ranks: func(n int) bool { return n%2 == 0 },
		Schedule: func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} },
	}))
	setup := setupOf(t, "scatter", "-np", "20", "-algo", "evenly")
	require.Contains(t, setup, `{"collective":"scatter","algo":"evenly","tables":{"10":["10 10 1 0\n`)
	require.Contains(t, setup, `"2":["2 2 1 0\n,1,i1, ,,i0,o0\n0,,,o0","2 2 1 0\n1,,,o0\n,0,i0, ,,i1,o0"]`)
	require.Contains(t, setup, `"20":["20 20 1 0\n`)
	require.NotContains(t, setup, `"3":[`)
	code, _, stderr := ringoHere("play", "scatter", "-np", "5", "-algo", "evenly")
	require.NotZero(t, code)
	require.Contains(t, stderr, "evenly is not for 5 ranks")
}

// A page of a trace has the last calls with the steps of all ranks.
func TestPlayTrace(t *testing.T) {
	var all trace.Trace
	for number := range uint32(4) {
		for r := range 2 {
			c := trace.Call{Comm: "c", Rank: r, Size: 2, Number: number + 1, Kind: "AllReduce", Algo: "ring", Bytes: 8, Peer: -1,
				Start: int64(number * 10), End: int64(number*10 + 5)}
			if number == 3 && r == 1 {
				c.Lost = 1
			}
			all.Calls = append(all.Calls, c)
		}
	}
	write := func() string {
		file := filepath.Join(t.TempDir(), "trace.json")
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, errors.Join(all.Write(f), f.Close()))
		return file
	}
	text, err := lastCalls(write())
	require.NoError(t, err)
	few, err := trace.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Len(t, few.Calls, 2)
	require.EqualValues(t, 3, few.Calls[1].Number)
	require.Contains(t, setupOf(t, "-trace", write()), `"follow":true`)
	require.Contains(t, setupOf(t, "allreduce", "-trace", write()), `"follow":false`)

	all.Calls = all.Calls[6:]
	_, err = lastCalls(write())
	require.ErrorContains(t, err, "no call of which all ranks' steps are there")
	_, err = lastCalls("play.go")
	require.ErrorContains(t, err, "play.go: ")
}
