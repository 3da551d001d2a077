//go:build unix

package matrix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// survivors is how many processes begin.
const survivors = 5

// TestKills has processes reduce, split, shrink and grow while others are killed, at times and in an order drawn from a
// seed. No living process is lost: all end in one group, and only killed processes are blamed. RINGO_KILLS is the
// number of runs, RINGO_KILLS_SEED the seed of the first; scripts/kill-runs sets both. Every tenth run stops processes
// for a time too.
func TestKills(t *testing.T) {
	tier.Long(t)
	runs, seed := tier.Count(2, 6), uint64(1)
	if n, err := strconv.Atoi(os.Getenv("RINGO_KILLS")); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("RINGO_KILLS_SEED"), 10, 64); err == nil {
		seed = n
	}
	var all []time.Duration
	for i := range runs {
		t.Run(fmt.Sprint("seed ", seed+uint64(i)), func(t *testing.T) {
			all = append(all, killRun(t, seed+uint64(i))...)
		})
	}
	if slices.Sort(all); len(all) > 0 {
		t.Logf("%d runs, %d recoveries: median %v, worst %v", runs, len(all), all[len(all)/2], all[len(all)-1])
	}
}

// A fleet are the processes of a run.
type fleet struct {
	t       *testing.T
	seed    uint64
	all     []*handle // by number
	killed  map[int]bool
	awaited map[int]place  // by process: where others may wait for it
	lost    map[int]string // who could not come in, and why: one of the old ones was killed before all had met
	took    []time.Duration
	group   map[int]string // the processes with which each goes on
	final   map[int]string // the last group of each
}

// A place is a rank of those that meet by an ID.
type place struct {
	id   bootstrap.ID
	rank int
}

func killRun(t *testing.T, seed uint64) []time.Duration {
	dice := rand.New(rand.NewPCG(seed, 0))
	f := &fleet{t: t, seed: seed, killed: map[int]bool{}, awaited: map[int]place{}, lost: map[int]string{},
		group: map[int]string{}, final: map[int]string{}}
	id := commtest.Meeting(t)
	for r := range survivors {
		f.start(id, r, survivors)
	}
	for n, h := range f.all {
		said, _ := h.hear("open", patience)
		require.Empty(t, said, "process %d", n)
	}
	stops := seed%10 == 0
	for range 1 + dice.IntN(3) { // two at least are left
		f.listen(time.Duration(dice.IntN(120)) * time.Millisecond)
		if dice.IntN(2) == 0 { // in the middle of a Grow
			for n, end := len(f.all), time.Now().Add(200*time.Millisecond); len(f.all) == n && time.Now().Before(end); {
				f.listen(time.Millisecond)
			}
			f.listen(time.Duration(dice.IntN(20000)) * time.Microsecond)
		}
		living := f.living()
		victim := living[dice.IntN(len(living))]
		if other := living[dice.IntN(len(living))]; stops && other != victim {
			f.pause(other, time.Duration(dice.IntN(1000))*time.Millisecond)
		}
		f.killed[victim] = true
		require.NoError(t, f.all[victim].cmd.Process.Kill())
		if p, ok := f.awaited[victim]; ok { // as a launcher says: it may not have come there yet
			bootstrap.Gone(p.id, p.rank, "it was killed")
		}
	}
	f.listen(time.Duration(dice.IntN(100)) * time.Millisecond)
	for end := time.Now().Add(patience); f.stale() && time.Now().Before(end); {
		// else some may end while others begin to shrink
		f.listen(time.Millisecond)
	}
	for _, n := range f.living() {
		f.all[n].tell("end")
	}
	for end := time.Now().Add(patience); len(f.final) < len(f.living()) && time.Now().Before(end); {
		f.listen(time.Millisecond)
	}
	want := f.living()
	for _, n := range want {
		got := strings.Fields(strings.Trim(f.final[n], "[]"))
		slices.Sort(got)
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "process %d, seed %d", n, seed)
	}
	if !stops && len(f.took) > 0 {
		require.Less(t, slices.Max(f.took), tier.Patience)
	}
	return f.took
}

// start starts the next process.
func (f *fleet) start(id bootstrap.ID, rank, size int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "RINGO_TEST_RANK=kills", "RINGO_COMM_ID="+id.String(),
		fmt.Sprint("RINGO_RANK=", rank), fmt.Sprint("RINGO_SIZE=", size),
		fmt.Sprint("RINGO_TEST_NUMBER=", len(f.all)), fmt.Sprint("RINGO_TEST_SEED=", f.seed),
		fmt.Sprint("RINGO_JOIN_TIMEOUT=", joinAtMost), "RINGO_TIMEOUT=20s")
	f.all = append(f.all, begin(f.t, cmd))
}

// living are the numbers of the processes that were not killed.
func (f *fleet) living() (list []int) {
	for n := range f.all {
		if f.lost[n] == "" && !f.killed[n] {
			list = append(list, n)
		}
	}
	return list
}

// stale reports whether a process has not noticed yet that another one was killed.
func (f *fleet) stale() bool {
	for _, n := range f.living() {
		for _, member := range strings.Fields(strings.Trim(f.group[n], "[]")) {
			if m, err := strconv.Atoi(member); err != nil || f.killed[m] {
				return true
			}
		}
	}
	return false
}

// pause stops a process for a time. It is not waited for.
func (f *fleet) pause(n int, d time.Duration) {
	p := f.all[n].cmd.Process
	require.NoError(f.t, p.Signal(syscall.SIGSTOP))
	time.AfterFunc(d, func() { _ = p.Signal(syscall.SIGCONT) }) // it may have ended
}

// listen reads the lines of processes, for a time.
func (f *fleet) listen(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for n := range f.all {
			for more := true; more; {
				select {
				case l, ok := <-f.all[n].says:
					if more = ok; ok {
						f.heard(n, l.text)
					}
				default:
					more = false
				}
			}
		}
	}
}

// heard takes note of a line of a process.
func (f *fleet) heard(n int, text string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "open":
		f.group[n] = word // the members are not known yet; from here on the process may not be lost
	case "grow":
		if f.killed[n] {
			return
		}
		size, err := strconv.Atoi(rest)
		require.NoError(f.t, err)
		id := commtest.Meeting(f.t)
		f.awaited[n], f.awaited[len(f.all)] = place{id, 0}, place{id, size}
		f.start(id, size, size+1)
		f.all[n].tell(id.String())
	case "culprit":
		who, why, _ := strings.Cut(rest, " ")
		culprit, err := strconv.Atoi(who)
		require.NoError(f.t, err)
		require.True(f.t, f.killed[culprit], "seed %d: process %d blames %d, which lives: %s", f.seed, n, culprit, why)
	case "recovered":
		d, err := time.ParseDuration(rest)
		require.NoError(f.t, err)
		f.took = append(f.took, d)
	case "lost":
		// before all had met
		require.True(f.t, f.killed[n] || n >= survivors && f.group[n] == "" && len(f.killed) > 0 && strings.Contains(text,
			"join: "),
			"seed %d: process %d says: %s", f.seed, n, text)
		f.lost[n] = text
	case "group":
		f.group[n] = rest
	case "final":
		f.final[n] = rest
	default: // but for the log
		require.True(f.t, f.killed[n] || strings.HasPrefix(word, "time="), "seed %d: process %d says: %s", f.seed, n, text)
	}
}
