package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runAll carries out a check by ranks of this process, and gives rank 0's report and every rank's error.
func runAll(t *testing.T, jobs []*Job, cfg Config) (*Report, []error) {
	t.Helper()
	errs := make([]error, len(jobs))
	reports := make([]*Report, len(jobs))
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() {
			reports[r], errs[r] = Run(t.Context(), j, cfg)
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

func codes(r *Report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Code+" "+f.Subject.String())
	}
	return list
}

// gathers is a stage in which all ranks meet, with something that a rank does first.
func gathers(name string, first func(j *Job) error) Stage {
	return Stage{Name: name, Quick: 5 * time.Second, Measure: func(ctx context.Context, j *Job) ([]Measurement, error) {
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
		return []Measurement{{Subject: Of(j.Host(), fmt.Sprint("rank ", j.Rank())), Quantity: "heard", Value: float64(heard)}}, nil
	}}
}

func fine(*Job) error { return nil }

// A rank that ends a stage early, that fails, hangs, dies or is stopped is named, and the others
// go on.
func TestRanksThatDoNotCome(t *testing.T) {
	hang := make(chan struct{})
	for _, c := range []struct {
		name  string
		first func(j *Job) error
		want  []string
		heard float64 // by the others in that stage
		after float64 // and in the next one
	}{
		{"well", fine, nil, 3, 3},
		{"skips", func(j *Job) error {
			if j.Rank() == 2 {
				return Skip("nothing here")
			}
			return nil
		}, nil, 2, 3},
		{"fails", func(j *Job) error {
			if j.Rank() == 2 {
				return errors.New("no")
			}
			return nil
		}, []string{"not-measured host b, rank 2"}, 2, 3},
		{"hangs", func(j *Job) error {
			if j.Rank() == 2 {
				<-hang
			}
			return nil
		}, []string{"stuck host b, rank 2"}, 2, 3},
		{"dies", func(j *Job) error {
			if j.Rank() == 2 {
				j.star.(*ray).conn.Close()
			}
			return nil
		}, []string{"died host b, rank 2"}, 2, 2},
		{"is stopped", func(j *Job) error {
			if j.Rank() == 2 {
				time.Sleep(time.Minute)
			}
			return nil
		}, []string{"stopped host b, rank 2"}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := Local("a", "a", "b")
				hang = make(chan struct{})
				if c.name == "is stopped" { // its runner says nothing either
					jobs[2].star = silent{jobs[2].star}
				}
				r, _ := runAll(t, jobs, Config{Stages: []Stage{gathers("first", c.first), gathers("second", fine)}})
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

// No bytes are not taken for nothing.
func TestGatherOfNoBytes(t *testing.T) {
	r, _ := runAll(t, Local("a", "b", "c"), Config{Stages: []Stage{{Name: "empty", Quick: time.Minute, Measure: func(ctx context.Context, j *Job) ([]Measurement, error) {
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

// silent says nothing, as a process that is stopped.
type silent struct{ star }

func (s silent) gather(context.Context, int, []byte) ([][]byte, []Loss, error) {
	time.Sleep(time.Minute)
	return nil, nil, errors.New("stopped")
}
