//go:build unix

package matrix

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	document = "../../../../docs/recovery.md"
	from, to = "<!-- table of ends: go test ./internal/test/e2e/matrix -update -->\n", "<!-- end of the table -->\n"
)

// TestDocument compares the document's table with the tested one.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(document)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(b), from)
	was, _, ended := strings.Cut(rest, to)
	require.True(t, found && ended, "%s has a table between %q and %q", document, from, to)
	require.Equal(t, inWords(read(t)), was, "RINGO_TEST=full go test ./internal/test/e2e/matrix -update, and read the difference")
}

func writeDocument(t *testing.T, table map[cell]outcome) {
	b, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(b), from)
	_, after, found := strings.Cut(rest, to)
	require.True(t, found)
	require.NoError(t, os.WriteFile(document, []byte(before+from+inWords(table)+to+after), 0o644))
}

// headings are those of the ends of a rank.
var headings = []string{"returns from main", "os.Exit, exit", "Close", "Abort", "SIGKILL", "SIGSTOP, 8 s"}

// inWords is the table for readers: a row for what a rank is in, a column for how another one ends.
func inWords(table map[cell]outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| a rank is in | %s |\n|%s\n", strings.Join(headings, " | "), strings.Repeat("---|", len(headings)+1))
	for _, op := range gpuOps {
		fmt.Fprintf(&b, "| %s |", op)
		for _, end := range allEnds {
			fmt.Fprintf(&b, " %s |", together(table, end, op))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// together is what the worlds have in a cell: once, if all have the same.
func together(table map[cell]outcome, end, op string) string {
	var texts []string
	in := map[string][]string{}
	for _, w := range worlds {
		o, ok := table[cell{w.name, end, op}]
		if !ok {
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

// told is what a rank gets, and the idle one if that is something else and not well.
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
