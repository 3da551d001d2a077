package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// TestWrongRowsAreFound: each wrong element of the sums and of the normed rows counts.
func TestWrongRowsAreFound(t *testing.T) {
	const n, count = 2, 16
	cfg, err := parse("allreduce", "-np", "2", "-d", "float32", "-row", "32")
	require.NoError(t, err)
	s := series{Collective: Collectives[0], typ: ringo.Float32, op: ringo.Sum, counts: []int{count}}
	onEach(t, workers(t, cfg, n, 4*count), func(i int, w *worker) error {
		var err error
		if w.norm, err = newNormBuffers(int(cfg.Row), 4*count, nil); err != nil {
			return err
		}
		op := w.operation("ringo", &s, count, false)
		wrong, err := w.verify(&s, op)
		require.Zero(t, wrong)
		if err != nil {
			return err
		}
		good := op.once
		op.once = func() error {
			err := good()
			_, _, normed := w.norm.parts(4 * count)
			if i == 1 {
				normed[4*3]++
				normed[4*15+3]++
				op.pairs[0].out[4*9+1]++
			}
			return err
		}
		wrong, err = w.verify(&s, op)
		require.EqualValues(t, 3, wrong)
		w.wrong = 0
		return err
	})
}

// TestNormFlags: flags that do not go with a norm are mistakes in the command line.
func TestNormFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"not allgather":           {"allreduce", "allgather", "-row", "1K"},
		"-row 1K: int8":           {"allreduce", "-row", "1K", "-d", "int8"},
		"of whole words":          {"allreduce", "-row", "1001"},
		"65536 bytes at most":     {"allreduce", "-row", "128K"},
		"leave -o out":            {"allreduce", "-row", "1K", "-o", "max"},
		"leave -m and -error out": {"allreduce", "-row", "1K", "-m", "2"},
		"peers on host memory":    {"allreduce", "-row", "1K", "-peer", "mpich"},
	} {
		_, err := parse(args...)
		require.ErrorContains(t, err, want)
	}
}
