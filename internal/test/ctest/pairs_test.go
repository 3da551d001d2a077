//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/tier"
)

var updatePairs = flag.Bool("pairs", false, "write the table of TestPairs anew, instead of comparing with it")

const (
	ranksOfPairs = 3
	pairsTable   = "../../../docs/mistakes.md"
	pairsFrom    = "<!-- table of pairs: go test ./internal/test/ctest -run TestPairs -pairs -->\n"
	pairsTo      = "<!-- end of the table -->\n"
)

var (
	mistakes  = []string{"mismatch", "exit", "kill", "stop", "hang", "raise", "close twice"} // of rank 1
	languages = []string{"C", "Go", "Python", "DDP"}
	shapes    = []string{"several communicators", "a child of Split", "a group", "v-variants"}
	tools     = []string{"swap", "ras", "history", "ringotest", "run"}
)

// A pair is two parts in one job of three ranks.
type pair struct {
	a, b     string
	language string
	shapes   []string
	tools    []string
}

// pairs gives all pairs that can be in one job.
func pairs() (all []pair) {
	parts := slices.Concat(languages, shapes, tools)
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			p := pair{a: a, b: b}
			for _, part := range []string{a, b} {
				switch {
				case slices.Contains(shapes, part):
					p.shapes = append(p.shapes, part)
				case slices.Contains(tools, part):
					p.tools = append(p.tools, part)
				case p.language == "" || p.language == "Python": // DDP is Python
					p.language = part
				default:
					p.language = "none"
				}
			}
			if p.language == "" {
				p.language = "Go"
				if p.has("swap") || p.has("ras") {
					p.language = "C"
				}
			}
			if p.together() {
				all = append(all, p)
			}
		}
	}
	return all
}

func (p pair) has(tool string) bool { return slices.Contains(p.tools, tool) }

func (p pair) python() bool { return p.language == "Python" || p.language == "DDP" }

// together reports whether the parts can be in one job. Languages meet in no communicator, ringotest starts ranks of
// tests in Go, swap is for programs that call NCCL, and programs in Go answer no RAS.
func (p pair) together() bool {
	switch {
	case p.language == "none", p.language == "DDP" && p.a != "DDP" && p.b != "DDP":
		return false
	case p.has("ringotest"):
		return p.language == "Go" && !p.has("run") && !p.has("swap") && !p.has("ras")
	case p.has("swap"):
		return p.language == "C"
	case p.has("ras"):
		return p.language != "Go"
	}
	return true
}

// TestPairs has rank 1 make each mistake in each pair of parts of the product. Whoever says something names rank 1 or
// says that it cannot know. The table, with the exit status of the job, is in docs/mistakes.md.
func TestPairs(t *testing.T) {
	tier.Heavy(t)
	table := readPairs(t)
	places := make(chan struct{}, 6) // jobs wait more than they work
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, p := range pairs() {
		for k, mistake := range mistakes {
			if !*updatePairs && !sampledPair(p, i, k) {
				continue
			}
			wg.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				t.Run(p.a+"/"+p.b+"/"+mistake, func(t *testing.T) {
					got, text := p.try(t, mistake)
					mu.Lock()
					defer mu.Unlock()
					key := [3]string{p.a, p.b, mistake}
					if *updatePairs {
						table[key] = got
					}
					t.Log(text)
					require.True(t, asGoodAs(mistake, got, table[key]), "%q, want %q", got, table[key])
				})
			})
		}
	}
	wg.Wait()
	if *updatePairs {
		writePairs(t, table)
	}
}

// asGoodAs reports whether an outcome is the wanted one. The exit status is that of the rank that fails first. Of a
// process that has ended with 0 either the launcher tells first or a broken connection.
func asGoodAs(mistake, got, want string) bool {
	g, status, _ := strings.Cut(got, ", ")
	w, other, _ := strings.Cut(want, ", ")
	gone := func(word string) bool { return word == "left" || word == "died" }
	return (g == w || mistake == "exit" && gone(g) && gone(w)) && (status == "0") == (other == "0")
}

// sampledPair reports whether CI tries a mistake in a pair: all without PyTorch, and of PyTorch, whose start takes
// seconds, one mistake in every other pair.
func sampledPair(p pair, i, k int) bool {
	if p.python() {
		return (i+k)%(2*len(mistakes)) == 0
	}
	return !tier.Race || (i+k)%len(mistakes) == 0
}

// try runs a job. It returns what is said with the exit status, and what was printed.
func (p pair) try(t *testing.T, mistake string) (outcome, printed string) {
	ringo, dir := ctest.Ringo(t), t.TempDir()
	shapes := "plain"
	if len(p.shapes) > 0 {
		shapes = strings.Join(p.shapes, ",")
	}
	timeout := tier.Soon(4 * time.Second)
	switch {
	case p.has("ras"):
		timeout = 30 * time.Second // it is asked before
	case p.python():
		timeout *= 2 // it is also the time to meet
	}
	addr := freeport.Addr(t)
	env := append(ctest.OnHost(), "PAIRS_SHAPES="+shapes, "PAIRS_MISTAKE="+mistake, "PAIRS_MEET="+dir,
		fmt.Sprint("RINGO_TIMEOUT=", timeout), "RINGO_JOIN_TIMEOUT=60s", "NCCL_RAS_ADDR="+addr)
	if p.has("history") {
		env = append(env, "RINGO_HISTORY="+filepath.Join(dir, "history"))
	}
	var argv []string
	switch {
	case p.has("ringotest"):
		env = append(env, "PAIRS_JOB=ringotest")
		argv = []string{os.Args[0], "-test.run", "^TestPairsJob$"}
	case p.language == "Go":
		env = append(env, "PAIRS_JOB=go")
		argv = []string{os.Args[0]}
	case p.language == "C":
		argv = []string{ctest.Program(t, "pairs", false)}
	default:
		argv = []string{python(t), filepath.Join(bindings(t), "tests", "pairs.py"), strings.ToLower(p.language)}
		env = append(env, "RINGO_LIBRARY="+ctest.Library(t), "PYTHONPATH="+bindings(t), "PYTHONDONTWRITEBYTECODE=1",
			"OMP_NUM_THREADS=1")
	}
	if !p.has("ringotest") {
		argv = append([]string{ringo, "run", "-np", fmt.Sprint(ranksOfPairs), "-grace", "5s", "--"}, argv...)
	}
	if p.has("swap") {
		argv = append([]string{ringo, "swap", "-host", "-nccl", ctest.Library(t), "--"}, argv...)
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &text, &text, time.Second
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	judged := ""
	if p.has("ras") && (mistake == "stop" || mistake == "hang") {
		unsaid := 0 // times in a row that it could not say
		require.Eventually(t, func() bool {
			out, _ := exec.Command(ringo, "why", "-ras", addr, "-for", "1s").CombinedOutput()
			if judged = string(out); !strings.HasPrefix(judged, "I cannot say") {
				unsaid = -1
			}
			unsaid++
			return strings.Contains(judged, "to blame") || unsaid > 3
		}, time.Minute, 100*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
	}
	err := <-ended
	require.NoError(t, ctx.Err(), "it hangs: %s", &text)
	status := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	if p.has("history") && status != 0 && judged == "" {
		out, _ := exec.CommandContext(ctx, ringo, "why", filepath.Join(dir, "history")).CombinedOutput()
		judged = string(out)
	}
	if !strings.Contains(judged, "to blame") && !strings.HasPrefix(judged, "I cannot say") {
		judged = text.String()
	}
	return fmt.Sprintf("%s, %d", said(t, judged, status), status), judged
}

// sentences are what is said of rank 1, the most telling first.
var sentences = []struct{ words, said string }{
	{`disagree.* rank 1[ ,]|rank 1's message [^\n]* has`, "both calls"},
	{`rank 1 has sent no message`, "never called"},
	{`rank 1 died`, "died"},
	{`rank 1 (has closed|has left)|a peer has left`, "left"},
	{`rank 1 ([^\n]*)?never (entered|called)`, "never called"},
	{`rank 1 ([^\n]*)?(answered nothing|does not answer)|rank 1 is stopped`, "stopped"},
	{`rank 1 [^\n]*panicked`, "panicked"},
	{`I cannot say|nobody knows more`, "cannot say"},
	{`is no communicator|AssertionError|ErrClosed`, "refused"},
}

// accused and blamed match a sentence of a rank, and a verdict, that blames another rank.
var (
	accused = regexp.MustCompile(`rank ([02]) (?:died|has closed|has left|answered nothing|is stopped|` +
		`never (?:entered|called))|because of ranks? ([02])|process of rank (0), which`)
	blamed = regexp.MustCompile(`to blame: ranks? ([02])(?: and [02])?\n`)
)

// said puts what a job or a judge has printed into a word. A cell that blames an innocent rank is a fault to be mended.
func said(t *testing.T, text string, status int) string {
	if strings.Contains(text, "to blame: ") {
		if m := blamed.FindStringSubmatch(text); m != nil {
			return "**blames " + m[1] + "**"
		}
	}
	for _, s := range sentences {
		if regexp.MustCompile(s.words).MatchString(text) {
			return s.said
		}
	}
	if m := accused.FindStringSubmatch(text); m != nil {
		return "**blames " + strings.Join(m[1:], "") + "**"
	}
	require.Zero(t, status, "nobody says why: %s", text)
	return "well"
}

// readPairs gives the outcomes in the document, by the two parts and the mistake.
func readPairs(t *testing.T) map[[3]string]string {
	text, err := os.ReadFile(pairsTable)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), pairsFrom)
	rows, _, ended := strings.Cut(rest, pairsTo)
	require.True(t, found && ended, "%s has no table", pairsTable)
	table := map[[3]string]string{}
	for row := range strings.Lines(rows) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		for k, mistake := range mistakes {
			if a, b, ok := strings.Cut(cells[0], ", "); ok && len(cells) == len(mistakes)+1 {
				table[[3]string{a, b, mistake}] = cells[k+1]
			}
		}
	}
	return table
}

func writePairs(t *testing.T, table map[[3]string]string) {
	text, err := os.ReadFile(pairsTable)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), pairsFrom)
	_, after, found := strings.Cut(rest, pairsTo)
	require.True(t, found)
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(mistakes, " | "), strings.Repeat("---|", len(mistakes)))
	for _, p := range pairs() {
		fmt.Fprintf(&b, "| %s, %s |", p.a, p.b)
		for _, mistake := range mistakes {
			fmt.Fprintf(&b, " %s |", table[[3]string{p.a, p.b, mistake}])
		}
		b.WriteString("\n")
	}
	require.NoError(t, os.WriteFile(pairsTable, []byte(before+pairsFrom+b.String()+pairsTo+after), 0o644))
}
