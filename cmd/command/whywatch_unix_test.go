//go:build unix

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/trace/judge"
)

// A heardWriter calls done when the text want has been written.
type heardWriter struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	done func()
}

func (w *heardWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if strings.Contains(w.text.String(), w.want) {
		w.done()
	}
	return len(b), nil
}

// Ringo why -watch judges dumps when new ones appear, and not those of before. It asks ranks for dumps by their pipes,
// and does not wait at a pipe without a reader.
func TestWhyWatch(t *testing.T) {
	dir, pipes := t.TempDir(), t.TempDir()
	writeOld(t, dir)
	deaf, pipe := filepath.Join(pipes, "p0.pipe"), filepath.Join(pipes, "p1.pipe")
	require.NoError(t, syscall.Mkfifo(deaf, 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { // a rank that dumps when it is asked
		b := make([]byte, 1)
		for ctx.Err() == nil {
			if n, err := reader.Read(b); n > 0 {
				break
			} else if err != nil && err != io.EOF {
				return
			}
			time.Sleep(time.Millisecond)
		}
		writeDumps(t, dir)
	})
	out := &heardWriter{want: "rank 2 never called all_reduce #3", done: cancel}
	require.NoError(t, whyWatch(ctx, []string{dir}, serveStill(t), filepath.Join(pipes, "p"), 10*time.Millisecond,
		20*time.Millisecond, out))
	require.Contains(t, out.text.String(), "rank 2 never called all_reduce #3")
	require.Contains(t, out.text.String(), "rank 1 (process 101 on node 10.0.0.1, GPU 1) never called AllReduce #7")
}

// writeOld writes what another hang has left: a log that blames rank 0, and a history that blames rank 1 of 2.
func writeOld(t *testing.T, dir string) {
	writeLogs(t, dir, 3, 0)
	r := history.Record{Comm: "before", Size: 2, State: judge.State{Heard: true, Peer: -1}, Cause: "rank 1 left",
		Culprits: []int{1}}
	_, err := r.Write(dir)
	require.NoError(t, err)
}

// serveStill answers as RAS of a job that stands still does.
func serveStill(t *testing.T) string {
	var answers []string
	for range 10000 {
		answers = append(answers, rasAnswer(7, 6, 7))
	}
	return serveRAS(t, answers)
}

// Flags that mean nothing, times that are none and files that are not there are errors at once.
func TestWhyRefuses(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	for args, want := range map[string]int{
		"-watch -every 0s -ras x": 2, "-watch -every -1s -ras x": 2, "-watch -for -1s -ras x": 2, "-watch": 2, "-watch -": 2,
		"-watch -json " + dir: 2, "-watch -html x " + dir: 2, "-for -1s " + dir: 2, "-every 1s " + dir: 2,
		"-every 0s " + dir: 2, "-pipes x " + dir: 2, "-watch " + none: 1, "-watch " + dir + " " + none: 1,
		"-watch " + none + "/rank_*": 1, "-watch " + dir + " -pipes " + none + "/p": 1,
	} {
		var out, errs strings.Builder
		require.Equal(t, want, ringoMain(t.Context(), append([]string{"why"}, strings.Fields(args)...), &out, &errs),
			"%s: %s", args, errs.String())
		require.NotEmpty(t, errs.String(), args)
	}
}

// Dumps of a job that is well, in a watched folder, accuse nobody however long they lie there.
func TestWhyWatchYoungDumps(t *testing.T) {
	dir := t.TempDir()
	look := whyLooker([]string{dir}, 3*time.Second)
	_, err := look(t.Context())
	require.NoError(t, err)
	writeDumps(t, dir)
	young := time.Unix(1_700_000_000, 20_000_000)
	for rank := range 3 {
		require.NoError(t, os.Chtimes(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d", rank)), young, young))
	}
	seen, err := look(t.Context())
	require.NoError(t, err)
	require.Equal(t, hang.Nothing, seen.Answer.Reason, seen.Answer.Sentence)
	require.Contains(t, seen.Answer.Sentence, "no rank waits for long")
}
