package programs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	document = "../../../docs/recovery.md"
	to       = "<!-- end of the table -->\n"
)

// A part is a table in the document: programs in Go, and in C.
type part struct {
	from     string
	inC      bool
	headings []string // the ends of a rank
	ops      []string
}

var parts = []part{
	{"<!-- table of ends: go test ./internal/test/programs -update -->\n", false,
		[]string{"returns from main", "os.Exit, exit", "Close", "Abort", "SIGKILL", "SIGSTOP, 8 s"}, gpuOps},
	{"<!-- table of ends in C -->\n", true, []string{"returns from main", "exit", "ncclCommDestroy", "ncclCommAbort",
		"SIGKILL", "SIGSTOP, 8 s"}, cGPUOps},
}

// TestDocument compares the document's tables with the tested one.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, p := range parts {
		_, rest, found := strings.Cut(string(b), p.from)
		was, _, ended := strings.Cut(rest, to)
		require.True(t, found && ended, "%s has a table between %q and %q", document, p.from, to)
		require.Equal(t, p.inWords(readTable(t)), was,
			"RINGO_TEST=full go test ./internal/test/programs -update, and read the difference")
	}
}

func writeDocument(t *testing.T, table map[cell]outcome) {
	b, err := os.ReadFile(document)
	require.NoError(t, err)
	text := string(b)
	for _, p := range parts {
		before, rest, _ := strings.Cut(text, p.from)
		_, after, found := strings.Cut(rest, to)
		require.True(t, found)
		text = before + p.from + p.inWords(table) + to + after
	}
	require.NoError(t, os.WriteFile(document, []byte(text), 0o644))
}

// inWords is the table for readers: a row for the operation that a rank is in, a column for the end of another rank.
func (p part) inWords(table map[cell]outcome) string {
	ends := allEnds
	if p.inC {
		ends = cEnds
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| a rank is in | %s |\n|%s\n", strings.Join(p.headings, " | "),
		strings.Repeat("---|", len(p.headings)+1))
	for _, op := range p.ops {
		fmt.Fprintf(&b, "| %s |", op)
		for _, end := range ends {
			fmt.Fprintf(&b, " %s |", p.together(table, end, op))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// together is the text of a cell: the outcome once if it is the same in all worlds, else each with its worlds.
func (p part) together(table map[cell]outcome, end, op string) string {
	var texts []string
	in := map[string][]string{}
	for _, w := range regions {
		o, ok := table[cell{w.name, end, op}]
		if !ok || w.inC != p.inC {
			continue
		}
		text := told(o)
		for _, other := range texts { // and sooner
			if strings.Split(other, ", ")[0] == strings.Split(text, ", ")[0] && !strings.Contains(text+other, times[2]) {
				text = other
			}
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		in[text] = append(in[text], w.short)
	}
	if len(texts) == 1 {
		return texts[0]
	}
	for i, text := range texts {
		texts[i] = strings.Join(in[text], " and ") + ": " + text
	}
	return strings.Join(texts, "; ")
}

// told is an outcome in words: of the busy rank, and of the idle one unless it is the same or "well".
func told(o outcome) string {
	busy, soon, _ := strings.Cut(o.busy, ", ")
	idle, _, _ := strings.Cut(o.idle, ", ")
	if soon != "" {
		soon = ", " + soon
	}
	if idle != busy && idle != "well" {
		return busy + " (idle: " + idle + ")" + soon
	}
	return busy + soon
}
