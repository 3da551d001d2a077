package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runAll carries out a check by ranks of this process, and gives rank 0's report and every rank's error.
func runAll(t *testing.T, jobs []*job, cfg config) (*report, []error) {
	t.Helper()
	errs := make([]error, len(jobs))
	reports := make([]*report, len(jobs))
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() {
			reports[r], errs[r] = run(t.Context(), j, cfg)
			if r == 0 {
				j.Close()
			}
		})
	}
	wg.Wait()
	for _, j := range jobs {
		j.Close()
	}
	return reports[0], errs
}

func codes(r *report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Code+" "+f.Subject.String())
	}
	return list
}

// gathers is a stage in which all ranks meet, with something that a rank does first.
func gathers(name string, first func(j *job) error) stage {
	return stage{Name: name, Quick: 5 * time.Second, Measure: func(ctx context.Context, j *job) ([]measurement, error) {
		if err := first(j); err != nil {
			return nil, err
		}
		parts, err := j.Gather(ctx, []byte(fmt.Sprint("from ", j.Rank())))
		if err != nil {
			return nil, err
		}
		heard := 0
		for r, p := range parts {
			if p != nil {
				heard++
				if string(p) != fmt.Sprint("from ", r) {
					return nil, fmt.Errorf("rank %d said %q", r, p)
				}
			}
		}
		return []measurement{{Subject: of(j.Host(), fmt.Sprint("rank ", j.Rank())), Quantity: "heard",
			Value: float64(heard)}}, nil
	}}
}

func fine(*job) error { return nil }

// A rank that ends a stage early, that fails, hangs, dies or is stopped is named, and the others
// go on.
func TestRanksThatDoNotCome(t *testing.T) {
	hang := make(chan struct{})
	for _, c := range []struct {
		name  string
		first func(j *job) error
		want  []string
		heard float64 // parts that the others get in that stage
		after float64 // parts that they get in the next one
	}{
		{"well", fine, nil, 3, 3},
		{"skips", func(j *job) error {
			if j.Rank() == 2 {
				return skip("nothing here")
			}
			return nil
		}, nil, 2, 3},
		{"fails", func(j *job) error {
			if j.Rank() == 2 {
				return errors.New("no")
			}
			return nil
		}, []string{"not-measured host b, rank 2"}, 2, 3},
		{"hangs", func(j *job) error {
			if j.Rank() == 2 {
				<-hang
			}
			return nil
		}, []string{"stuck host b, rank 2"}, 2, 3},
		{"dies", func(j *job) error {
			if j.Rank() == 2 {
				j.star.(*ray).Close()
			}
			return nil
		}, []string{"died host b, rank 2"}, 2, 2},
		{"is stopped", func(j *job) error {
			if j.Rank() == 2 {
				time.Sleep(time.Minute)
			}
			return nil
		}, []string{"stopped host b, rank 2"}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := local("a", "a", "b")
				hang = make(chan struct{})
				if c.name == "is stopped" { // its runner says nothing either
					jobs[2].star = silent{jobs[2].star}
				}
				r, _ := runAll(t, jobs, config{Stages: []stage{gathers("first", c.first), gathers("second", fine)}})
				close(hang)
				time.Sleep(time.Hour)
				require.Equal(t, c.want, codes(r))
				for _, m := range r.Of("first", "heard") {
					if m.Rank < 2 && c.name != "hangs" && c.name != "is stopped" {
						require.Equal(t, c.heard, m.Value)
					}
				}
				require.NotEmpty(t, r.Of("second", "heard"))
				for _, m := range r.Of("second", "heard") {
					require.Equal(t, c.after, m.Value)
				}
			})
		})
	}
}

// All stages together keep within their time, whatever ranks do: what was not reached is left out, and the verdict says
// so unless something is known to be worse.
func TestWithin(t *testing.T) {
	spends := func(name string, rank int, d, limit time.Duration) stage {
		s := gathers(name, func(j *job) error {
			if j.Rank() == rank {
				time.Sleep(d)
			}
			return nil
		})
		s.Quick = limit
		return s
	}
	for _, c := range []struct {
		name    string
		stages  []stage
		worse   []finding
		left    []string
		verdict severity
		codes   []string
	}{
		{"in time", []stage{spends("a", 1, 9*time.Second, 10*time.Second), spends("b", 0, 9*time.Second, 10*time.Second)},
			nil, nil, well, nil},
		{"each to its limit", []stage{spends("a", 1, 9*time.Second, 10*time.Second),
			spends("b", 0, 9*time.Second, 10*time.Second), spends("c", 1, 5500*time.Millisecond, 10*time.Second),
			spends("d", 1, 0, 10*time.Second), spends("short", 1, 0, time.Second)},
			nil, []string{"d"}, unjudged, []string{"no-time the job"}},
		{"stuck", []stage{spends("a", 1, time.Minute, 10*time.Second), spends("b", 2, time.Minute, 10*time.Second),
			spends("c", 1, 0, 20*time.Second)},
			nil, []string{"c"}, broken, []string{"stuck host b, rank 1", "stuck host c, rank 2", "no-time the job"}},
		{"something worse", []stage{spends("a", 1, 25*time.Second, 29*time.Second), spends("b", 1, 0, 10*time.Second)},
			[]finding{{Severity: degraded, Code: "slow-pair"}}, []string{"b"}, degraded,
			[]string{"slow-pair the job", "no-time the job"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.stages[0].Judge = func(*report, *config) []finding { return c.worse }
				r, errs := runAll(t, local("a", "b", "c"), config{Stages: c.stages, Within: 28 * time.Second})
				time.Sleep(time.Hour) // for what is left behind
				require.Equal(t, []error{nil, nil, nil}, errs)
				var left []string
				for _, s := range r.Stages {
					if s.Skipped == noTime {
						left = append(left, s.Name)
					}
				}
				require.Len(t, r.Stages, len(c.stages))
				require.Equal(t, c.left, left)
				require.Equal(t, c.codes, codes(r))
				require.Equal(t, c.verdict, r.Verdict)
				require.LessOrEqual(t, r.Took, 28.)
				var b strings.Builder
				require.NoError(t, r.Print(&b))
				require.Equal(t, len(left) > 0, strings.Contains(b.String(), "left out: no time left"))
			})
		})
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestWithinByDefault: without config.Stages the time limits are those that the command's help promises.
func TestWithinByDefault(t *testing.T) {
	for _, full := range []bool{false, true} {
		j := alone()
		_, err := run(canceled(t), j, config{Full: full, NoGPUs: true})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, map[bool]time.Duration{false: 30 * time.Second, true: 10 * time.Minute}[full], j.cfg.Within)
		require.NoError(t, j.Close())
	}
}

// TestGatherOfNoBytes: an empty part in a gather is not taken for a missing one.
func TestGatherOfNoBytes(t *testing.T) {
	r, _ := runAll(t, local("a", "b", "c"),
		config{Stages: []stage{{Name: "empty", Quick: time.Minute,
			Measure: func(ctx context.Context, j *job) ([]measurement, error) {
				for _, gather := range []func(context.Context, []byte) ([][]byte, error){j.Gather, j.Collect} {
					parts, err := gather(ctx, nil)
					for _, p := range parts {
						if p == nil {
							err = errors.New("nothing came")
						}
					}
					if err != nil {
						return nil, err
					}
				}
				return nil, nil
			}}}})
	require.Empty(t, r.Findings)
}

// silent is a star that never answers, like a stopped process.
type silent struct{ star }

func (s silent) gather(context.Context, int, []byte) (message, error) {
	time.Sleep(time.Minute)
	return message{}, errors.New("stopped")
}

// TestNoNumbers: a measurement of NaN or infinity does not keep the report from being written.
func TestNoNumbers(t *testing.T) {
	r, _ := runAll(t, local("a"),
		config{Stages: []stage{{Name: "odd", Quick: time.Minute, Measure: func(context.Context, *job) ([]measurement, error) {
			return []measurement{{Quantity: "rate", Value: math.Inf(1)},
				{Quantity: "rate", Value: math.NaN(), Text: "of nothing"}}, nil
		}}}})
	require.NoError(t, r.WriteJSON(io.Discard))
	require.Equal(t, []string{"+Inf", "NaN of nothing"}, []string{r.Of("odd", "")[0].Text, r.Of("odd", "")[1].Text})
}

// TestLostBefore: a second check of a job names the stage of the first in which a rank was lost.
func TestLostBefore(t *testing.T) {
	jobs := local("a", "b")
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = run(t.Context(), jobs[1],
			config{Stages: []stage{gathers("first", func(j *job) error { return j.star.(*ray).Close() })}})
	})
	cfg := config{Stages: []stage{gathers("first", fine)}}
	for range 2 {
		r, err := run(t.Context(), jobs[0], cfg)
		require.NoError(t, err)
		require.Equal(t, []string{"died host b, rank 1"}, codes(r))
		require.Contains(t, r.Findings[0].Text, "died in stage first")
	}
	wg.Wait()
	for _, j := range jobs {
		j.Close()
	}
}

// Without the rank that leads the others have no report: they name it, and at once. One that the others have left out
// lets them end before it does.
func TestWithoutTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, errs := runAll(t, local("a", "b", "c"), config{Stages: []stage{gathers("first", func(j *job) error {
			if j.First() {
				for _, s := range j.star.(*hub).spokes[1:] {
					s.Close()
				}
			}
			return nil
		})}})
		for _, err := range errs[1:] {
			absent, ok := errors.AsType[*absentError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, component{"a", "rank 0"}, absent.Who)
			require.Contains(t, absent.Why, "it leads the check, and is gone: its process has ended")
			began := time.Now()
			absent.Wait(t.Context())
			require.Zero(t, time.Since(began))
		}

		jobs := local("a", "b")
		slow := gathers("slow", func(j *job) error {
			if j.rank == 1 {
				time.Sleep(12 * time.Second)
			}
			return nil
		})
		slow.Quick = time.Second
		late := slow
		late.Measure = func(ctx context.Context, j *job) ([]measurement, error) {
			if j.rank == 1 { // as a process that was stopped
				time.Sleep(30 * time.Second)
			}
			return nil, nil
		}
		jobs[1].star = sleeper{jobs[1].star}
		var ended time.Time
		cfg := config{Stages: []stage{late, slow}, Within: time.Minute}
		go func() {
			_, err := run(t.Context(), jobs[0], cfg)
			require.NoError(t, err)
			time.Sleep(40 * time.Second)
			ended = time.Now()
			jobs[0].Close()
		}()
		_, err := run(t.Context(), jobs[1], cfg)
		absent, ok := errors.AsType[*absentError](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, absent.Why, "the others have taken it for lost")
		absent.Wait(t.Context())
		require.Equal(t, ended, time.Now(), "it waits for the others' end, and no longer")
		jobs[1].Close()
		time.Sleep(time.Hour) // for what is left behind
	})
}

// sleeper is a star that comes to gathers late, like a process that was stopped for a while.
type sleeper struct{ star }

func (s sleeper) gather(ctx context.Context, seq int, data []byte) (message, error) {
	time.Sleep(20 * time.Second)
	return s.star.gather(ctx, seq, data)
}

// TestCutOff: a host that does not answer is named if others do. If none does, the one that leads may be cut off.
func TestCutOff(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		cut   []int
		want  []string
		says  string
	}{
		{[]string{"a", "b", "c"}, []int{2}, []string{"cut-off host c"}, "other hosts do well"},
		{[]string{"a", "b", "b", "c"}, []int{1, 2}, []string{"cut-off host b"}, "other hosts do well"},
		{[]string{"a", "b", "c", "d"}, []int{1, 3}, []string{"cut-off host b", "cut-off host d"}, "other hosts do well"},
		{[]string{"a", "b"}, []int{1}, []string{"cut-off host a to host b"},
			"no third host can tell which of them is cut off"},
		{[]string{"a", "a", "b"}, []int{2}, []string{"cut-off host a to host b"}, "no third host can tell"},
		{[]string{"a", "b", "c"}, []int{1, 2}, []string{"cut-off the job"},
			" can host a, which leads, hear anything: it is cut off itself, or the network"},
	} {
		j := local(c.hosts...)[0]
		var lost []loss
		for _, rank := range c.cut {
			lost = append(lost, loss{Rank: rank, Cut: true, Why: "no answer", Stage: "host"})
			j.lost[rank] = lost[len(lost)-1]
		}
		r := &report{}
		r.lose(j, lost, "host")
		require.Equal(t, c.want, codes(r))
		require.Contains(t, r.Findings[0].Text, "cut off in stage host: ")
		require.Contains(t, r.Findings[0].Text, c.says)
	}
}

// TestTimeOfJoining counts among that of all stages, which have a part of it in any case, and is in the report.
func TestTimeOfJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ joining, left time.Duration }{
			{time.Second, 29 * time.Second}, {20 * time.Second, 10 * time.Second}, {time.Minute, leastLeft}} {
			j := alone()
			j.began = time.Now()
			time.Sleep(c.joining)
			var left time.Duration
			cfg := config{Within: withinQuick, Stages: []stage{gathers("first", func(j *job) error {
				left = j.remaining()
				return nil
			})}}
			for _, again := range []bool{false, true} {
				r, err := run(t.Context(), j, cfg)
				require.NoError(t, err)
				if again { // with -every
					require.Equal(t, withinQuick, left)
					require.Zero(t, r.Took)
				} else {
					require.Equal(t, c.left, left)
					require.Equal(t, c.joining.Seconds(), r.Took)
				}
			}
			require.NoError(t, j.Close())
		}
	})
}
