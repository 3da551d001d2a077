// Command elastic trains a small model on ranks that come and go. Ranks are lost at random in the middle of a
// step; the other ranks Shrink, agree on the newest weights, and repeat the step. When too few ranks are
// left, Grow takes in new ones. In the end the loss is the same as that of an undisturbed run.
//
//	go run ./examples/elastic -losses 200
//
// The ranks are goroutines here. In a job of processes the same code goes on after a kill: see docs/recovery.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

const (
	features = 16
	rows     = 240
	rate     = 0.05
	fewest   = 3 // ranks; fewer ranks Grow
)

// A job is the common state of all ranks, and decides which ranks are lost.
type job struct {
	ranks, steps, losses int
	cfg                  ringo.Config

	mu     sync.Mutex
	rng    *rand.Rand
	lost   int
	gained int
	slow   time.Duration // the slowest recovery
	all    sync.WaitGroup
	result chan float64
}

// A worker is one rank: its model, and the number of steps that have improved it.
type worker struct {
	job     *job
	step    int
	weights []float64
}

// errLost is the error by which a lost rank ends.
var errLost = errors.New("this rank is lost")

// data is a row of the training set, the same on every rank.
func data(row int) (x [features]float64, y float64) {
	rng := rand.New(rand.NewPCG(1, uint64(row)))
	for i := range x {
		x[i] = rng.NormFloat64()
		y += float64(i%5) * x[i]
	}
	return x, y + rng.NormFloat64()
}

// train improves the model until it has had all steps, whichever ranks come and go.
func (w *worker) train(ctx context.Context, c *ringo.Comm) error {
	for w.step < w.job.steps {
		err := w.improve(c)
		if err == nil && c.Size() < fewest {
			c, err = w.grow(ctx, c)
		}
		if errors.Is(err, errLost) {
			c.Abort(err)
			return errors.Join(c.Close(), nil)
		}
		if err != nil {
			if c, err = w.recover(ctx, c); err != nil {
				return err
			}
		}
	}
	if c.Rank() == 0 {
		w.job.result <- w.loss()
	}
	return c.Close()
}

// improve does a step: each rank takes its share of the rows, whatever the number of ranks is.
func (w *worker) improve(c *ringo.Comm) error {
	gradient := make([]float64, features)
	for row := c.Rank(); row < rows; row += c.Size() {
		x, y := data(row)
		for i := range x {
			y -= w.weights[i] * x[i]
		}
		for i := range x {
			gradient[i] += x[i] * y / rows
		}
	}
	if w.job.loses(c.Size()) {
		return errLost
	}
	if err := ringo.AllReduce(c, gradient, ringo.Sum); err != nil {
		return err
	}
	for i := range gradient { // nothing can fail from here on, so the model changes wholly or not at all
		w.weights[i] += rate * gradient[i]
	}
	w.step++
	return nil
}

// recover goes on with the remaining ranks, again and again if more are lost meanwhile.
func (w *worker) recover(ctx context.Context, c *ringo.Comm) (*ringo.Comm, error) {
	began := time.Now()
	for {
		next, err := c.Shrink(ctx)
		if err != nil {
			return c, err
		}
		if err := c.Close(); err != nil {
			return next, err
		}
		c = next
		if err := w.agree(c); err == nil {
			w.job.note(time.Since(began))
			return c, nil
		}
	}
}

// agree gives all ranks the newest model: some ranks may have completed the step that failed on others.
func (w *worker) agree(c *ringo.Comm) error {
	newest := []int64{int64(w.step)}
	if err := ringo.AllReduce(c, newest, ringo.Max); err != nil {
		return err
	}
	who := []int64{math.MaxInt64}
	if int64(w.step) == newest[0] {
		who[0] = int64(c.Rank())
	}
	if err := ringo.AllReduce(c, who, ringo.Min); err != nil {
		return err
	}
	if err := ringo.Broadcast(c, w.weights, int(who[0])); err != nil {
		return err
	}
	w.step = int(newest[0])
	return nil
}

// grow takes in new ranks, up to the number of ranks in the beginning.
func (w *worker) grow(ctx context.Context, c *ringo.Comm) (*ringo.Comm, error) {
	size := w.job.ranks
	var id *bootstrap.ID
	if c.Rank() == 0 {
		made, err := ringo.NewID("127.0.0.1:0")
		if err != nil {
			return c, err
		}
		id = &made
		for rank := c.Size(); rank < size; rank++ {
			cfg := w.job.cfg
			cfg.ID, cfg.Rank, cfg.Size = id, rank, size
			w.job.start(ctx, cfg)
		}
	}
	next, err := c.Grow(ctx, id, size)
	if err != nil {
		return c, err
	}
	if err := c.Close(); err != nil {
		return next, err
	}
	return next, w.agree(next)
}

// start starts a new rank.
func (j *job) start(ctx context.Context, cfg ringo.Config) {
	j.mu.Lock()
	j.gained++
	j.mu.Unlock()
	j.all.Go(func() {
		c, err := ringo.Open(ctx, cfg)
		w := &worker{job: j, step: -1, weights: make([]float64, features)}
		if err == nil {
			if w.agree(c) != nil {
				c, err = w.recover(ctx, c)
			}
		}
		if err == nil {
			err = w.train(ctx, c)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "elastic:", err)
		}
	})
}

// loses decides at random whether a rank of size ranks is lost now.
func (j *job) loses(size int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if size < 2 || j.lost == j.losses || j.rng.IntN(4*size) > 0 {
		return false
	}
	j.lost++
	return true
}

func (j *job) note(took time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slow = max(j.slow, took)
}

// loss is the mean squared error of the model.
func (w *worker) loss() (sum float64) {
	for row := range rows {
		x, y := data(row)
		for i := range x {
			y -= w.weights[i] * x[i]
		}
		sum += y * y / rows
	}
	return sum
}

// run trains, and returns the loss of the model.
func (j *job) run(ctx context.Context) (float64, error) {
	j.rng = rand.New(rand.NewPCG(2, 3))
	j.result = make(chan float64, 1)
	comms, err := ringo.OpenLocal(j.ranks, j.cfg)
	if err != nil {
		return 0, err
	}
	for _, c := range comms {
		j.all.Go(func() {
			w := &worker{job: j, weights: make([]float64, features)}
			if err := w.train(ctx, c); err != nil {
				fmt.Fprintln(os.Stderr, "elastic:", err)
			}
		})
	}
	j.all.Wait()
	select {
	case loss := <-j.result:
		return loss, nil
	default:
		return 0, errors.New("no rank has come to the end")
	}
}

func main() {
	ranks := flag.Int("ranks", 8, "ranks in the beginning")
	losses := flag.Int("losses", 200, "ranks that are lost on the way")
	flag.Parse()
	cfg := ringo.Config{Log: slog.New(slog.DiscardHandler)} // lost ranks are expected here
	calm := &job{ranks: *ranks, steps: 200 + 8**losses, cfg: cfg}
	want, err := calm.run(context.Background())
	if err == nil {
		wild := &job{ranks: *ranks, steps: calm.steps, losses: *losses, cfg: cfg}
		var got float64
		began := time.Now()
		if got, err = wild.run(context.Background()); err == nil {
			fmt.Printf("%d ranks lost, %d gained, slowest recovery %v, %v in all\nloss %.12f, undisturbed %.12f\n",
				wild.lost, wild.gained, wild.slow.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), got, want)
			if math.Abs(got-want) > 1e-9*want {
				err = errors.New("the losses differ")
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "elastic:", err)
		os.Exit(1)
	}
}
