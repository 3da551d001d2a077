package ringo

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
)

// A rank that is none of the communicator's is refused before any rank is waited for.
func TestOpenRefuses(t *testing.T) {
	id := &bootstrap.ID{}
	for want, cfg := range map[string]Config{
		"rank 0 of 0":  {},
		"rank 0 of -1": {Size: -1},
		"rank -1 of 2": {ID: id, Rank: -1, Size: 2},
		"rank 2 of 2":  {ID: id, Rank: 2, Size: 2},
		"no ID; make one with NewID and give it to all ranks, or use OpenEnv": {Rank: 1, Size: 2},
		"Slots (RINGO_SLOTS) is 1":               {Size: 1, Slots: 1},
		"Card has 1025 bytes, want 1024 at most": {Size: 1, Card: make([]byte, 1025)},
	} {
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, want)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, [3]any{"Open", cfg.Rank, -1}, [3]any{e.Op, e.Rank, e.Peer})
	}
	for want, open := range map[string]func() ([]*Comm, error){
		"0 ranks":               func() ([]*Comm, error) { return OpenLocal(0, Config{}) },
		"1 Devices for 2 ranks": func() ([]*Comm, error) { return OpenLocal(2, Config{Devices: make([]*gpu.Device, 1)}) },
		"(RINGO_HISTORY_SIGNAL)": func() ([]*Comm, error) {
			return OpenLocal(2, Config{History: t.TempDir() + "/h", HistorySignal: "NONE"})
		},
	} {
		comms, err := open()
		require.Nil(t, comms)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// OpenEnv takes rank and size from a launcher, and says what is wrong with its words.
func TestOpenEnv(t *testing.T) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		for _, launcher := range []string{"RINGO_", "RANK", "WORLD_SIZE", "OMPI_", "SLURM_", "PMI_", "PMIX_",
			"JOB_COMPLETION_INDEX"} {
			if strings.HasPrefix(name, launcher) {
				t.Setenv(name, "")
			}
		}
	}
	_, err := OpenEnv(t.Context(), Config{})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "no launcher has set RINGO_RANK, RANK,")
	t.Setenv("SLURM_PROCID", "1")
	_, err = OpenEnv(t.Context(), Config{})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "SLURM_STEP_ID is not")
	t.Setenv("SLURM_PROCID", "")
	t.Setenv("RINGO_SIZE", "1")
	_, err = OpenEnv(t.Context(), Config{})
	require.ErrorContains(t, err, "RINGO_SIZE is set, but nothing says which rank this is")
	t.Setenv("RINGO_RANK", "0")
	_, err = OpenEnv(t.Context(), Config{Slots: 1})
	require.ErrorContains(t, err, "Slots (RINGO_SLOTS) is 1")
	c, err := OpenEnv(t.Context(), Config{Rank: 5, Size: 7})
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 1}, [2]int{c.Rank(), c.Size()})
	require.NoError(t, c.Close())
}

// Without a GPU the functions for one have nothing to say, and Register says why.
func TestWithoutGPU(t *testing.T) {
	c := local(t, 1, Config{})[0]
	require.ErrorContains(t, c.Synchronize(0), "this rank has no GPU")
	require.Nil(t, c.DeviceAlgorithms(KindAllReduce, 1024, false))
	name, why := c.DeviceChoice(KindAllReduce, 1024, false)
	require.Equal(t, [2]string{"", c.noGPU}, [2]string{name, why})
	require.NotEmpty(t, why)
	require.Nil(t, c.Footprint())
	require.Empty(t, c.DeviceTransport(0))
	_, err := c.Register(Region{})
	require.ErrorIs(t, err, ErrUnsupported)
	require.NoError(t, c.Prepare(AllReduceOf([]int32{1}, Sum)))
	require.ErrorIs(t, c.Prepare(BroadcastOf([]int32{1}, 1)), ErrInvalid)
	require.ErrorIs(t, c.DoContext(t.Context(), BroadcastOf([]int32{1}, 1)), ErrInvalid)
	_, err = ExplainDevice(KindAllReduce, 2, 0, 1024, 0, GPUs{}, Config{Algo: "quantum"})
	require.ErrorIs(t, err, ErrInvalid)
	nets, err := Config{Net: "Socket"}.Networks()
	require.NoError(t, err)
	require.Len(t, nets, 1)
}

// All ranks have the cards of all, and a communicator that is made of another those of its own ranks.
func TestCards(t *testing.T) {
	id, err := NewID("127.0.0.1:0")
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	const n = 3
	var all sync.WaitGroup
	errs, cards, parts := make([]error, n), make([][][]byte, n), make([][][]byte, n)
	for r := range n {
		all.Go(func() {
			cfg := Config{ID: &id, Rank: r, Size: n, Card: []byte(strings.Repeat("x", r*512))}
			c, err := Open(t.Context(), cfg)
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			cards[r] = c.Cards()
			part, err := c.Split(t.Context(), r%2, -r)
			if err != nil {
				errs[r] = err
				return
			}
			defer part.Close()
			parts[r] = part.Cards()
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for r := range n {
		require.Len(t, cards[r], n)
		for q := range n {
			require.Len(t, cards[r][q], q*512)
		}
	}
	require.Len(t, parts[0], 2, "rank 2 before rank 0")
	require.Len(t, parts[0][0], 1024)
	require.Empty(t, parts[0][1])
	require.Len(t, parts[1], 1)
	require.Len(t, parts[1][0], 512)
}
