package programs

import (
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// number is the number in a variable of the environment, or otherwise if that is empty.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// TestPrograms carries out random programs. A failure is made smaller and printed; it can be
// repeated from that text:
//
//	RINGO_PROGRAMS_FILE=minimal.txt go test ./internal/test/programs -run TestPrograms
//
// Other variables, with their defaults on the emulator and on GPUs: RINGO_PROGRAMS_SEED, the first seed (1);
// RINGO_PROGRAMS_SECONDS, the most time (none, 5 with RINGO_TEST=full; 60); RINGO_PROGRAMS_OPERATIONS,
// communicators' operations to carry out at least (none; 100,000); RINGO_PROGRAMS_COUNT, the number of programs (8, or
// none where one of these is given; none); RINGO_PROGRAMS_STEPS, the most steps of a program (60; 2,000);
// RINGO_PROGRAMS_TIMES, how often the same is done again (5; 1,000); RINGO_PROGRAMS_RING=1, always the smallest FIFO
// (0); RINGO_PROGRAMS_SHRINK, how often a failing program is tried again to make it smaller (150);
// RINGO_PROGRAMS_FAILURES, how many kinds of failures to look for (1); RINGO_PROGRAMS_DEADLINE of one program (1m).
func TestPrograms(t *testing.T) {
	if file := os.Getenv("RINGO_PROGRAMS_FILE"); file != "" {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p, err := Parse(string(text))
		require.NoError(t, err)
		c := new(crew)
		defer c.end()
		_, err = c.try(p)
		require.NoError(t, err)
		return
	}
	tier.Long(t)
	l := Limits{Ranks: 4, Steps: 60, Bytes: 16 << 10, Comms: 3, Times: 5}
	seconds, operations := tier.Count(0, 5), 0
	if gputest.OnGPU() {
		d, err := driver()
		require.NoError(t, err)
		n, err := d.DeviceGetCount()
		require.NoError(t, err)
		l.Ranks, l.MinRank, l.Steps, l.Bytes, l.Times, seconds, operations = n, n, 2000, 1<<20, 1000, 60, 100_000
	}
	l.Steps = number(t, "RINGO_PROGRAMS_STEPS", l.Steps)
	l.Times = number(t, "RINGO_PROGRAMS_TIMES", l.Times)
	l.Ring = number(t, "RINGO_PROGRAMS_RING", 0) > 0
	hunt(t, l, bounds{seconds: seconds, operations: operations, programs: 8}, 1)
}

// TestKills carries out random programs whose ranks end at any point, as TestPrograms does. They end in time, with the
// right data or an error that names who has ended, and all that are left go on together. Of the variables it has SEED
// (21), COUNT (12; 40 with RINGO_TEST=full), SECONDS, SHRINK, FAILURES and DEADLINE, and RINGO_PROGRAMS_APART=1, always
// processes (0).
func TestKills(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("its GPUs are emulated")
	}
	n := tier.Count(12, 40)
	if testing.Short() {
		n = 6
	}
	l := Limits{Kills: true, Apart: number(t, "RINGO_PROGRAMS_APART", 0) > 0}
	hunt(t, l, bounds{programs: n}, 21)
}

// TestLetters: messages in one order for all ranks, which every rank cuts into groups as it likes, all arrive over
// every transport: the first one that has not arrived is in a group under way at both of its ends.
func TestLetters(t *testing.T) {
	c := new(crew)
	defer c.end()
	for _, transport := range []string{"inproc", "shm", "socket", "socket+tcp"} {
		for seed := range uint64(tier.Count(6, 15)) {
			if transport == "shm" && runtime.GOOS != "linux" {
				continue
			}
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 5))}
			p := &Program{Seed: seed, Kills: true, Host: true, Ranks: 3 + g.IntN(3), Bytes: 1 << 20, Transport: transport,
				Slot: 256}
			g.w = newWorld(p)
			g.take(p, g.letters(150))
			require.NotEmpty(t, p.Steps)
			_, err := c.try(p)
			require.NoError(t, err, "%s", p)
		}
	}
}

// bounds end a hunt; those that are 0 do not, and programs only if no other one does.
type bounds struct{ seconds, operations, programs int }

// hunt carries out programs until one fails, from the seed on that the environment or else the caller says.
func hunt(t *testing.T, l Limits, most bounds, first int) {
	most.seconds = number(t, "RINGO_PROGRAMS_SECONDS", most.seconds)
	most.operations = number(t, "RINGO_PROGRAMS_OPERATIONS", most.operations)
	if most.seconds > 0 || most.operations > 0 {
		most.programs = 0
	}
	most.programs = number(t, "RINGO_PROGRAMS_COUNT", most.programs)
	seed := uint64(number(t, "RINGO_PROGRAMS_SEED", first))
	begun := time.Now()
	var mu sync.Mutex
	programs, calls, next, manners := 0, 0, seed, map[string]bool{}
	var took []time.Duration
	failures := number(t, "RINGO_PROGRAMS_FAILURES", 1)
	run := func() {
		c := new(crew)
		defer c.end()
		for {
			mu.Lock()
			p := Generate(next, l)
			over := len(manners) >= failures || most.operations > 0 && calls >= most.operations ||
				most.programs > 0 && next >= seed+uint64(most.programs) ||
				most.seconds > 0 && time.Since(begun) > time.Duration(most.seconds)*time.Second
			next++
			mu.Unlock()
			if over {
				return
			}
			r, err := c.try(p)
			mu.Lock()
			programs, calls = programs+1, calls+r.calls
			if r.took > 0 {
				took = append(took, r.took)
			}
			first := err != nil && !manners[manner(err)] && len(manners) < failures
			if first {
				manners[manner(err)] = true
			}
			mu.Unlock()
			if first {
				small, last := smaller(c, p, err, number(t, "RINGO_PROGRAMS_SHRINK", 150))
				t.Errorf("seed %d: %v\nmade smaller:\n%s%v", p.Seed, err, small, last)
			}
		}
	}
	var wg sync.WaitGroup
	for range workers() {
		wg.Go(run)
	}
	wg.Wait()
	t.Logf("%d programs from seed %d on, %d operations, in %v", programs, seed, calls,
		time.Since(begun).Round(time.Millisecond))
	if slices.Sort(took); len(took) > 0 {
		t.Logf("%d of them recover: median %v, worst %v", len(took), took[len(took)/2], took[len(took)-1])
	}
	require.NotZero(t, programs)
}

// workers is how many processes carry out programs: on GPUs one, for it has them all.
func workers() int {
	if gputest.OnGPU() {
		return 1
	}
	return max(1, min(4, runtime.GOMAXPROCS(0)))
}

// smaller makes a program smaller that fails in the same way.
func smaller(c *crew, p *Program, err error, most int) (*Program, error) {
	how, end := manner(err), time.Now().Add(2*time.Minute)
	return Smaller(p, most, func(q *Program) bool {
		if time.Now().After(end) {
			return false
		}
		_, failed := c.try(q)
		same := failed != nil && manner(failed) == how
		if same {
			err = failed
		}
		return same
	}), err
}

// manner is the part of an error that is the same for failures of one cause: the words, without the step and numbers.
func manner(err error) string {
	text := err.Error()
	if _, what, ok := strings.Cut(text, ": device "); ok {
		text = what
	}
	text, _, _ = strings.Cut(text, "\n")
	text = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+|\(.*`).ReplaceAllString(text, "")
	for _, word := range []string{"want x", "not done after", "left behind", "deadlock"} {
		if strings.Contains(err.Error(), word) {
			return word
		}
	}
	return text[:min(len(text), 60)]
}

// TestText reads back what programs print.
func TestText(t *testing.T) {
	for seed := range uint64(200) {
		p := Generate(seed, Limits{Ranks: 4, Steps: 60, Bytes: 16 << 10, Comms: 3, Kills: seed%2 == 1})
		q, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p.String(), q.String())
		require.Equal(t, p.String(), Repair(p).String(), "nothing is to be repaired")
	}
}
