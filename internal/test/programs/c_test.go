//go:build linux && (amd64 || arm64)

package programs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/ctest"
)

// inC starts ranks that are programs in C, cmd/libnccl/testdata/ends.c with libnccl.so.2.
func inC(gpus bool) func(t *testing.T) []*handle {
	return func(t *testing.T) []*handle {
		file, id := ctest.Program(t, "ends", gpus), filepath.Join(t.TempDir(), "id")
		env := ctest.OnHost()
		if gpus {
			env = append(ctest.OnGPUs(ranks), "NCCL_MAX_CTAS=2") // queues that an emulated kernel soon fills
		}
		env = append(slices.Clip(env), fmt.Sprint("RINGO_TIMEOUT=", 2*patience), fmt.Sprint("RINGO_JOIN_TIMEOUT=", patience))
		all := make([]*handle, ranks)
		for r := range all {
			cmd := exec.Command(file, fmt.Sprint(r), fmt.Sprint(ranks), id)
			cmd.Env = env
			w, err := started(cmd)
			require.NoError(t, err)
			all[r] = handleOf(t, w)
			all[r].words = inGo
		}
		return all
	}
}

// inGo puts a result of a program in C into the words of rank.result: only ncclRemoteError, other results stay.
func inGo(said string) string {
	if !strings.HasPrefix(said, "6 ") {
		return said
	}
	for _, why := range []struct{ sentence, word string }{
		{"rank 1 died", "died"}, {"rank 1 aborted", "aborted"}, {"rank 1 has left", "left"},
		{"rank 1 has closed the communicator", "left"}, {"rank 1 over shm: a peer has left", "left"},
	} {
		if strings.Contains(said, why.sentence) {
			return why.word
		}
	}
	return said
}
