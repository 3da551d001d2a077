package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ringo-go/ringo"
)

// A trainer is one rank's part in the training. Every rank has all weights and a
// share of each batch; the gradients of the shares sum to that of the batch.
type trainer struct {
	c    *ringo.Comm
	o    options
	data corpus
	net  *network

	order      order
	batch      []int // samples of all ranks
	low, high  int   // this rank's share of batch
	labels     []byte
	reductions []*ringo.Call // of each layer's gradients
	pending    []*ringo.Pending

	loss    float64 // summed over samples of this rank since the last report
	correct int
	since   int // steps since the last report
	spent   time.Duration
	waited  time.Duration // part of spent, in collectives
}

// A result is the result of a training. All ranks have the same one, except for times.
type result struct {
	losses       []float64 // mean loss of the samples of each report
	accuracy     float64   // of the test, 0…1
	weights      uint64    // fingerprint
	step, waited time.Duration
}

// train trains, and rank 0 writes reports to w. mine is the data on rank 0, and ignored on others.
func train(c *ringo.Comm, o options, mine corpus, w io.Writer) (result, error) {
	if c.Rank() != 0 {
		w = io.Discard
	}
	t, err := newTrainer(c, o, mine)
	if err != nil {
		return result{}, err
	}
	t.describe(w)
	var res result
	for step := 1; step <= o.steps; step++ {
		if err := t.step(); err != nil {
			return res, err
		}
		if step%o.check == 0 || step == o.steps {
			if err := agree(c, fmt.Sprintf("weights after step %d", step), t.net.fingerprint()); err != nil {
				return res, err
			}
		}
		if step%o.report == 0 || step == o.steps {
			loss, accuracy, err := t.tally()
			if err != nil {
				return res, err
			}
			res.losses = append(res.losses, loss)
			fmt.Fprintf(w, "step %5d   loss %.4f   accuracy %5.1f %%\n", step, loss, 100*accuracy)
			if math.IsNaN(loss) || math.IsInf(loss, 0) {
				return res, fmt.Errorf("the training has diverged: the loss of step %d is %v; give a smaller -lr than %g", step,
					loss, o.rate)
			}
		}
	}
	if res.accuracy, err = t.test(); err != nil {
		return res, err
	}
	res.weights = t.net.fingerprint()
	res.step, res.waited = t.spent/time.Duration(o.steps), t.waited/time.Duration(o.steps)
	fmt.Fprintf(w, "test accuracy %.1f %% of %d samples\n", 100*res.accuracy, t.data.test.len())
	fmt.Fprintf(w, "%v a step, %v of it (%.0f %%) waiting for gradients\n",
		res.step.Round(time.Microsecond), res.waited.Round(time.Microsecond), 100*float64(t.waited)/float64(max(t.spent, 1)))
	return res, nil
}

// newTrainer makes a trainer, with the data and the weights of rank 0 on all ranks.
func newTrainer(c *ringo.Comm, o options, mine corpus) (*trainer, error) {
	if err := agree(c, "flags", o.fingerprint()); err != nil {
		return nil, err
	}
	data, err := share(c, mine)
	if err != nil {
		return nil, err
	}
	t := &trainer{c: c, o: o, data: data, batch: make([]int, o.batch)}
	t.order = order{n: data.train.len(), seed: o.seed}
	t.low, t.high = part(o.batch, c.Rank(), c.Size())
	t.labels = make([]byte, max(t.high-t.low, 64)) // for a share of a batch, or for a piece of the test
	t.net = newNetwork(len(t.labels), data.train.pixels, o.hidden, data.classes())
	if c.Rank() == 0 {
		t.net.randomize(rand.New(rand.NewPCG(o.seed, 0)))
	}
	for _, l := range t.net.layers {
		if err := ringo.Broadcast(c, l.params, 0); err != nil {
			return nil, err
		}
		t.reductions = append(t.reductions, ringo.AllReduceOf(l.grads, ringo.Sum))
	}
	return t, nil
}

func (t *trainer) describe(w io.Writer) {
	ranks := "1 rank"
	if n := t.c.Size(); n > 1 {
		ranks = fmt.Sprintf("%d ranks over %s", n, t.c.Transport(1))
	}
	fmt.Fprintf(w, "%s; %d-%d-%d network, %d weights; %d samples, batches of %d\n",
		ranks, t.data.train.pixels, t.o.hidden, t.data.classes(), t.net.size(), t.data.train.len(), t.o.batch)
}

// step learns from one batch.
func (t *trainer) step() error {
	start := time.Now()
	t.order.next(t.batch)
	mine := t.batch[t.low:t.high]
	loss, correct := t.predict(t.data.train, mine)
	t.loss += loss
	t.correct += correct
	t.since++

	// The layers' gradients are summed one by one, the last layer's first. With
	// overlap the sum of one layer is under way while the next is computed; the
	// calls and their order are the same, and so are the bits.
	var err error
	t.pending = t.pending[:0]
	t.net.backward(len(mine), func(l int) {
		if t.o.overlap {
			t.pending = append(t.pending, t.c.Start(t.reductions[l]))
		} else if err == nil {
			err = t.wait(func() error { return t.c.Do(t.reductions[l]) })
		}
	})
	for _, p := range t.pending {
		err = errors.Join(err, t.wait(p.Wait))
	}
	if err != nil {
		return err
	}
	t.net.descend(float32(t.o.rate), float32(t.o.momentum), 1/float32(t.o.batch))
	t.spent += time.Since(start)
	return nil
}

// wait calls f and adds its time to waited.
func (t *trainer) wait(f func() error) error {
	start := time.Now()
	err := f()
	t.waited += time.Since(start)
	return err
}

// predict runs samples through the network, at most len(t.labels).
func (t *trainer) predict(d dataset, samples []int) (loss float64, correct int) {
	for s, i := range samples {
		t.net.input(s, d.image(i))
		t.labels[s] = d.labels[i]
	}
	t.net.forward(len(samples))
	return t.net.judge(t.labels[:len(samples)])
}

// tally is the mean loss and accuracy of all ranks' samples since the last report.
func (t *trainer) tally() (loss, accuracy float64, err error) {
	sums := []float64{t.loss, float64(t.correct)}
	if err := ringo.AllReduce(t.c, sums, ringo.Sum); err != nil {
		return 0, 0, err
	}
	samples := float64(t.since * t.o.batch)
	t.loss, t.correct, t.since = 0, 0, 0
	return sums[0] / samples, sums[1] / samples, nil
}

// test is the accuracy on the test data. Every rank tests a share of them.
func (t *trainer) test() (float64, error) {
	low, high := part(t.data.test.len(), t.c.Rank(), t.c.Size())
	correct := []int64{0}
	var piece []int
	for i := low; i < high; i++ {
		piece = append(piece, i)
		if len(piece) == len(t.labels) || i == high-1 {
			_, n := t.predict(t.data.test, piece)
			correct[0] += int64(n)
			piece = piece[:0]
		}
	}
	err := ringo.AllReduce(t.c, correct, ringo.Sum)
	return float64(correct[0]) / float64(t.data.test.len()), err
}

// fingerprint is a hash of the bits of all weights.
func (n *network) fingerprint() uint64 {
	h := fnv.New64a()
	var b []byte
	for _, l := range n.layers {
		b = b[:0]
		for _, p := range l.params {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p))
		}
		h.Write(b)
	}
	return h.Sum64()
}

// agree fails on all ranks unless all have the same fingerprint of thing.
func agree(c *ringo.Comm, thing string, fingerprint uint64) error {
	all := make([]uint64, c.Size())
	if err := ringo.AllGather(c, all, []uint64{fingerprint}); err != nil {
		return err
	}
	for rank, f := range all {
		if f != all[0] {
			return &disagreement{thing, rank, f, all[0]}
		}
	}
	return nil
}

// A disagreement is the error of a rank whose fingerprint differs from rank 0's.
type disagreement struct {
	thing     string
	rank      int
	its, want uint64
}

func (d *disagreement) Error() string {
	return fmt.Sprintf("%s differ: rank %d has %016x, rank 0 %016x; start the same program with the same flags on all "+
		"hosts, and if they are, report it",
		d.thing, d.rank, d.its, d.want)
}
