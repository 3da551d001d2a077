package host

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// readme is the variable that makes this test binary README's first program.
const readme = "HOST_TEST_README"

// readmeProgram is that program, without its comments.
func readmeProgram() {
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	grad := make([]float32, 1<<20)
	if err := ringo.AllReduce(c, grad, ringo.Avg); err != nil {
		log.Fatal(err)
	}
}

// README's first program ends on an error. By then every rank has written its history, which shows the one that never
// came.
func TestReadmeProgram(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	require.NoError(t, err)
	_, listing, _ := strings.Cut(string(text), "\n```go\n")
	listing, _, _ = strings.Cut(listing, "\n```\n")
	require.Contains(t, listing, "func main() {\n")
	here, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	listing = regexp.MustCompile(" // .*").ReplaceAllString(listing, "")
	require.Contains(t, string(here), "\n"+strings.Replace(listing, "main", "readmeProgram", 1)+"\n",
		"readmeProgram is not what README.md has: copy it")

	const size = 4
	dir := t.TempDir()
	places := make(chan struct{}, 4)
	var runs sync.WaitGroup
	for i := range tier.Count(2, 20) {
		histories, id := filepath.Join(dir, fmt.Sprint("run", i)), commtest.Meeting(t)
		run := func() error {
			var ranks []*exec.Cmd
			for _, r := range []int{0, 2, 3} {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), readme+"=1", "RINGO_COMM_ID="+id.String(), fmt.Sprint("RINGO_RANK=", r),
					fmt.Sprint("RINGO_SIZE=", size), "RINGO_TIMEOUT=500ms", "RINGO_HISTORY="+histories)
				if err := cmd.Start(); err != nil {
					return err
				}
				ranks = append(ranks, cmd)
			}
			c, err := ringo.Open(t.Context(), ringo.Config{ID: &id, Rank: 1, Size: size, History: histories})
			for _, cmd := range ranks {
				if cmd.Wait() == nil {
					err = fmt.Errorf("an all-reduce of %d ranks ended well without one: %w", size, err)
				}
			}
			if err != nil {
				return err
			}
			defer c.Close()
			for r := range size {
				if files, _ := filepath.Glob(filepath.Join(histories, fmt.Sprintf("ringo-*-rank%d.json", r))); len(files) != 1 &&
					r != 1 {
					// a rank that lives may write later
					return fmt.Errorf("run %d: rank %d has written %v", i, r, files)
				}
			}
			return nil
		}
		runs.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
}
