package command

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A realHang is a job of two ranks that stood still under PyTorch 2.11 and NCCL 2.28.9 on two H100s: a function of
// cmd/why/testdata/hangs.py, whose truth.txt says what is wrong.
type realHang struct {
	name   string
	reason string // the right answer
	blame  []int
	fault  []int  // ranks that an answer may name; nil: the same as blame
	says   string // a part of the right sentence
	cannot bool   // the files do not tell what is wrong
}

var realHangs = []realHang{
	{name: "skips", reason: "absent", blame: []int{1},
		says: "rank 1 (process 1173 on node 10.0.0.3, GPU 1) never called all_reduce #9 of the default group"},
	{name: "shape", reason: "shapes", blame: []int{0, 1},
		says: "rank 1 called all_reduce #6 of the default group with Float[1024] (hangs.py:21 in step), and rank 0 with " +
			"Float[16777216]"},
	{name: "kind", reason: "different", blame: []int{0, 1},
		says: "as collective #6 of the default group rank 1 called broadcast (hangs.py:39 in kind), and rank 0 all_reduce " +
			"(hangs.py:39 in kind)"},
	{name: "groups", reason: "order", blame: []int{0, 1},
		says: "in a circle: rank 0 waits in all_reduce #2 of group 1 (hangs.py:46 in groups), rank 1 waits in all_reduce " +
			"#2 of group 2"},
	{name: "stopped", reason: "silent", blame: []int{1}, cannot: true}, // or its file was not copied
	{name: "killed", reason: "silent", blame: []int{1},
		says: "rank 1 (process 1183 on node 10.0.0.3, GPU 1) does not answer RAS: dead, stopped, or cut off"},
	{name: "raises", reason: "died", blame: []int{1},
		says: "ended with ValueError: loss is nan in step 7 (hangs.py:61 in raises)"},
	{name: "loader", reason: "absent", blame: []int{1}, says: "never called all_reduce #9"},
	{name: "spins", reason: "blocked", blame: []int{1}, cannot: true},
	{name: "streams", reason: "order", blame: []int{0, 1},
		says: "rank 0 called all_reduce #2 of group 1 first (hangs.py:84 in streams), and rank 1 called all_reduce #2 of " +
			"group 2 first"},
	{name: "root", reason: "roots", blame: []int{0, 1}, cannot: true},
	{name: "dtype", reason: "shapes", blame: []int{0, 1},
		says: "with Double[16777216] (hangs.py:21 in step), and rank 0 with Float[16777216]"},
	{name: "sends", reason: "order", blame: []int{0, 1}, says: "send", cannot: true},
	{name: "receives", reason: "absent", blame: []int{0}, fault: []int{0, 1}, says: "never called all_reduce #6"},
	{name: "uneven", reason: "absent", blame: []int{1}, says: "never called all_reduce #13"},
	{name: "no_group", reason: "not-made", blame: []int{1}, cannot: true},
	{name: "busy", reason: "absent", blame: []int{1}, says: "never called all_reduce #7"},
	{name: "oom", reason: "different", blame: []int{0, 1}, fault: []int{1},
		says: "rank 1 called all_gather (hangs.py:127 in oom), and rank 0 all_reduce (hangs.py:21 in step)"},
	{name: "lock", reason: "absent", blame: []int{1}, says: "never called all_reduce #7"},
	{name: "scatter", reason: "shapes", blame: []int{0, 1},
		says: "rank 1 called _reduce_scatter_base #6 of the default group with Float[8192] (hangs.py:137 in scatter), and " +
			"rank 0 with Float[33554432]"},
	{name: "clip", reason: "shapes", blame: []int{0, 1}, fault: []int{0},
		says: "rank 1 called all_reduce #7 of the default group with Float[16777216] (hangs.py:142 in clip), and rank 0 " +
			"with Float[1000] (hangs.py:143 in clip)"},
	{name: "late", reason: "slow", blame: []int{1},
		says: "was slow, not stuck: it called all_reduce #8 of the default group (hangs.py:21 in step) 18s after the " +
			"first, and the time-out is 12s"},
}

// faulty are the ranks that an answer may name.
func (h *realHang) faulty() []int {
	if h.fault != nil {
		return h.fault
	}
	return h.blame
}

// judge compares an answer with the truth. If the answer blames either of two sides, one of them has to be at fault.
func (h *realHang) judge(a *whyAnswer, whole bool) verdict {
	innocent := slices.ContainsFunc(a.Culprits, func(r int) bool { return !slices.Contains(h.faulty(), r) })
	guilty := slices.ContainsFunc(a.Culprits, func(r int) bool { return slices.Contains(h.faulty(), r) })
	switch named := slices.Equal(a.Culprits, h.blame); {
	case innocent && !(a.Either && guilty):
		return wrong
	case named && (!whole || a.Reason == h.reason && strings.Contains(a.Sentence, h.says)):
		return right
	}
	return unknown
}

var frNamed = regexp.MustCompile(`missing ranks: \{([0-9, ]+)\}|Culprit rank (\d+)`)

// peer grades the answer of PyTorch's torchfrtrace to the same dumps, whose text lies beside them.
func (h *realHang) peer(text string) verdict {
	v := unknown
	for _, m := range frNamed.FindAllStringSubmatch(text, -1) {
		for word := range strings.SplitSeq(m[1]+m[2], ", ") {
			switch r, err := strconv.Atoi(word); {
			case err != nil:
			case !slices.Contains(h.faulty(), r):
				return wrong
			default:
				v = right
			}
		}
	}
	return v
}

// unpackReal writes the files of the real hangs, with their own times.
func unpackReal(t *testing.T) (dir string) {
	dir = t.TempDir()
	f, err := os.Open("../why/testdata/hangs.tar.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			return dir
		}
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.FromSlash(head.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, 0o600))
		require.NoError(t, os.Chtimes(name, head.ModTime, head.ModTime))
	}
}

// askedOf is the one answer of ringo why to files; "unknown" if there are no files.
func askedOf(t *testing.T, files ...string) (a whyAnswer) {
	if len(files) == 0 {
		return whyAnswer{Reason: "unknown"}
	}
	var out, errs strings.Builder
	ringoMain(t.Context(), append([]string{"why", "-json"}, files...), &out, &errs)
	var all []whyAnswer
	require.NoError(t, json.Unmarshal([]byte(out.String()), &all), errs.String())
	require.Len(t, all, 1)
	return all[0]
}

// Hangs of PyTorch on NCCL and GPUs. Ringo why gives each its right sentence; or it tells that the files do not say,
// and what to collect.
func TestWhyProofReal(t *testing.T) {
	dir := unpackReal(t)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, len(realHangs))
	words := [...]string{right: "right", unknown: "unknown", wrong: "**wrong**"}
	var table strings.Builder
	table.WriteString("| what is wrong | all files | dumps alone | `torchfrtrace` | what `ringo why` says of all files " +
		"|\n|---|---|---|---|---|\n")
	var counts [3][3]int
	for _, h := range realHangs {
		read := func(name string) string {
			b, err := os.ReadFile(filepath.Join(dir, h.name, name))
			require.NoError(t, err)
			return strings.TrimSpace(string(b))
		}
		dumps, err := filepath.Glob(filepath.Join(dir, h.name, "nccl_trace_rank_*"))
		require.NoError(t, err)
		all, alone := askedOf(t, filepath.Join(dir, h.name)), askedOf(t, dumps...)
		got := [3]verdict{h.judge(&all, true), h.judge(&alone, false), h.peer(read("frtrace.txt"))}
		for k, v := range got {
			counts[k][v]++
		}
		require.Equal(t, h.cannot, got[0] == unknown, "%s: %s", h.name, all.Sentence)
		require.NotEqual(t, wrong, got[0], "%s: %s", h.name, all.Sentence)
		require.NotEqual(t, wrong, got[1], "%s, dumps alone: %s", h.name, alone.Sentence)
		if h.cannot {
			require.NotEmpty(t, all.Remedy, h.name)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", read("truth.txt"), words[got[0]], words[got[1]],
			strings.Replace(words[got[2]], "unknown", "nothing", 1), all.Sentence)
	}
	table.WriteString("| **right / unknown / wrong** |")
	for _, c := range counts {
		fmt.Fprintf(&table, " %d / %d / %d |", c[right], c[unknown], c[wrong])
	}
	table.WriteString(" |\n")
	region(t, "real", table.String())
}

// A group that one rank does not make leaves no dump, and RAS sees nothing. Only the ranks' stacks tell of it.
func TestWhyStandsInNewGroup(t *testing.T) {
	dir := filepath.Join(unpackReal(t), "no_group")
	const library = "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
	for rank, frames := range []string{
		"  File \"" + library + "\", line 2100 in _new_process_group_helper\n  File \"" + library +
			"\", line 5400 in new_group\n  File \"/home/u/hangs.py\", line 113 in no_group\n",
		"  File \"/home/u/hangs.py\", line 18 in forever\n  File \"/home/u/hangs.py\", line 114 in no_group\n",
	} {
		text := "Current thread 0x00007effc6a71b80 (most recent call first):\n" + frames
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("stack_rank_%d.txt", rank)), []byte(text), 0o600))
	}
	a := askedOf(t, dir)
	require.Equal(t, "unknown", a.Reason)
	require.Contains(t, a.Notes, "rank 0 stands at hangs.py:113 in no_group, making a group")
	require.Contains(t, a.Notes, "rank 1 stands at hangs.py:18 in forever")
}
