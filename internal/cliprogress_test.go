package internal_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cli"
)

// A bar stands on a terminal from the third second on, says what is left, and goes when the work has ended or something
// else is to be written.
func TestProgress(t *testing.T) { synctest.Test(t, progress) }

func progress(t *testing.T) {
	var out bytes.Buffer
	p := &cli.Progress{To: &out, Terminal: true}
	for i := range 45 { // tenths of a second
		p.Show("ring of 1G", float64(i)/100)
		time.Sleep(100 * time.Millisecond)
	}
	drawn := out.String()
	for _, line := range []string{"ring of 1G, 2s, about 8s left", "ring of 1G, 3s, about 7s left",
		"ring of 1G, 4s, about 6s left"} {
		require.Contains(t, drawn, line)
	}
	require.NotContains(t, drawn, ", 1s")
	require.NotContains(t, drawn, "\n")
	require.Regexp(t, `40% \[=+>?\.*\] +ring of 1G, 4s`, drawn)
	out.Reset()
	p.Clear()
	require.True(t, strings.HasSuffix(out.String(), "\r"), "%q", out.String())
	require.Empty(t, strings.TrimSpace(strings.NewReplacer("\033[2K", "", "\r", "").Replace(out.String())))
	out.Reset()
	p.Show("tree of 1G", 0.5)
	p.Hide()
	p.Clear()
	require.Empty(t, out.String(), "quick work says nothing")

	require.Nil(t, cli.NewProgress(&out))
	(*cli.Progress)(nil).Show("", 0)
	(*cli.Progress)(nil).Clear()
}

// Elsewhere there are plain lines, few of them, and each whole.
func TestProgressOfJob(t *testing.T) { synctest.Test(t, progressOfJob) }

func progressOfJob(t *testing.T) {
	var out bytes.Buffer
	p := &cli.Progress{To: &out}
	for i := range 50 {
		p.Show("seeds", float64(i)/50)
		p.Hide()
		time.Sleep(time.Second)
	}
	p.Show("others", 0.1)
	p.Clear()
	require.Equal(t, "seeds: 30 % after 15s, about 35s left\nseeds: 60 % after 30s, about 20s left\nseeds: 90 % after "+
		"45s, about 5s left\n", out.String())

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.False(t, cli.NewProgress(w).Terminal)
}
