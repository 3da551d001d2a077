package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

var small = options{steps: 60, batch: 50, hidden: 24, rate: 0.05, momentum: 0.9, seed: 1, report: 1, check: 1}

// onRanks runs f on n ranks of this process and returns its errors by rank.
func onRanks(t *testing.T, n int, f func(c *ringo.Comm) error) []error {
	t.Helper()
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	require.NoError(t, err)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, c := range comms {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
	return errs
}

// trainOn trains on n ranks and returns the results by rank. Only rank 0 has data.
func trainOn(t *testing.T, n int, o options, w io.Writer) []result {
	t.Helper()
	data := corpus{makeGlyphs(1, 1, 700), makeGlyphs(1, 2, 101)}
	results := make([]result, n)
	errs := onRanks(t, n, func(c *ringo.Comm) (err error) {
		mine := corpus{}
		if c.Rank() == 0 {
			mine = data
		}
		results[c.Rank()], err = train(c, o, mine, w)
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	return results
}

// Data-parallel training promises that all ranks have the same bits, with overlap or
// without, and that any number of ranks has the same curve of losses as one rank.
func TestSameCurve(t *testing.T) {
	for batch, ranks := range map[int][]int{50: {2, 3, 4}, 3: {4}} { // 3 leaves a rank of 4 without a sample
		o := small
		o.batch = batch
		if batch < 10 {
			o.rate = 0.005
		}
		var out bytes.Buffer
		alone := trainOn(t, 1, o, &out)[0]
		require.Len(t, alone.losses, o.steps)
		require.Less(t, alone.losses[o.steps-1], alone.losses[0])
		require.Contains(t, out.String(), "step    60   loss ")
		require.Contains(t, out.String(), "1 rank; 256-24-10 network, 6418 weights; 700 samples")
		require.Contains(t, out.String(), "of 101 samples")
		for _, n := range ranks {
			t.Run(fmt.Sprintf("batch %d, %d ranks", batch, n), func(t *testing.T) {
				all := trainOn(t, n, o, io.Discard)
				for _, r := range all {
					require.Equal(t, all[0].weights, r.weights)
					require.Equal(t, all[0].losses, r.losses)
				}
				worst := 0.0
				for i, loss := range all[0].losses {
					worst = max(worst, math.Abs(loss-alone.losses[i]))
				}
				t.Logf("largest difference of the losses: %.2g", worst)
				require.Less(t, worst, 1e-5)
				require.InDelta(t, alone.accuracy, all[0].accuracy, 0.02)

				o := o
				o.overlap = true
				for _, r := range trainOn(t, n, o, io.Discard) {
					require.Equal(t, all[0].weights, r.weights, "overlap changes no bit")
					require.Equal(t, all[0].losses, r.losses)
				}
			})
		}
	}
}

func TestLearns(t *testing.T) {
	o := small
	o.steps, o.report, o.check = 150, 50, 7
	r := trainOn(t, 2, o, io.Discard)[0]
	require.Greater(t, r.accuracy, 0.7)
	require.Len(t, r.losses, 3)
	require.Positive(t, r.step)
	require.Less(t, r.waited, r.step)
}

func TestDivergence(t *testing.T) {
	o := small
	o.rate = 1e20
	for _, err := range onRanks(t, 2, func(c *ringo.Comm) error {
		_, err := train(c, o, corpus{makeGlyphs(1, 1, 100), makeGlyphs(1, 2, 10)}, io.Discard)
		return err
	}) {
		require.ErrorContains(t, err, "smaller -lr than 1e+20")
	}
}

// The error on every rank names the rank that differs from rank 0.
func TestAgree(t *testing.T) {
	for _, err := range onRanks(t, 3, func(c *ringo.Comm) error { return agree(c, "weights", 5) }) {
		require.NoError(t, err)
	}
	for _, err := range onRanks(t, 3, func(c *ringo.Comm) error { return agree(c, "weights", uint64(c.Rank()/2)) }) {
		require.EqualError(t, err, "weights differ: rank 2 has 0000000000000001, rank 0 0000000000000000; "+
			"start the same program with the same flags on all hosts, and if they are, report it")
	}
	for _, err := range onRanks(t, 2, func(c *ringo.Comm) error {
		o := small
		o.batch += c.Rank()
		_, err := train(c, o, corpus{}, io.Discard)
		return err
	}) {
		require.ErrorContains(t, err, "flags differ: rank 1")
	}
}

// agree finds one wrong bit in one weight of one rank.
func TestWrongBit(t *testing.T) {
	data := corpus{makeGlyphs(1, 1, 100), makeGlyphs(1, 2, 10)}
	for _, err := range onRanks(t, 2, func(c *ringo.Comm) error {
		tr, err := newTrainer(c, small, data)
		if err != nil {
			return err
		}
		if err := tr.step(); err != nil {
			return err
		}
		if c.Rank() == 1 {
			w := &tr.net.layers[1].params[17]
			*w = math.Float32frombits(math.Float32bits(*w) ^ 1)
		}
		return agree(c, "weights", tr.net.fingerprint())
	}) {
		require.ErrorContains(t, err, "weights differ: rank 1")
	}
}

func TestOrder(t *testing.T) {
	a, b := order{n: 10, seed: 1}, order{n: 10, seed: 1}
	whole, piece := make([]int, 20), make([]int, 4)
	a.next(whole)
	var pieces []int
	for range 5 { // the third straddles two epochs
		b.next(piece)
		pieces = append(pieces, piece...)
	}
	require.Equal(t, whole, pieces)
	require.NotEqual(t, whole[:10], whole[10:], "each epoch has its own order")
	for _, epoch := range [][]int{whole[:10], whole[10:]} {
		sorted := slices.Sorted(slices.Values(epoch))
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, sorted)
	}
	c := order{n: 10, seed: 2}
	other := make([]int, 20)
	c.next(other)
	require.NotEqual(t, whole, other)
}

func TestPart(t *testing.T) {
	for n := range 12 {
		for ranks := 1; ranks < 6; ranks++ {
			end := 0
			for r := range ranks {
				low, high := part(n, r, ranks)
				require.Equal(t, end, low)
				require.LessOrEqual(t, high-low, n/ranks+1)
				end = high
			}
			require.Equal(t, n, end)
		}
	}
}

func TestGlyphs(t *testing.T) {
	a, b := makeGlyphs(1, 1, 200), makeGlyphs(1, 1, 200)
	require.Equal(t, a, b)
	require.NotEqual(t, a.images, makeGlyphs(1, 2, 200).images)
	require.NotEqual(t, a.images, makeGlyphs(2, 1, 200).images)
	require.Equal(t, glyphClasses, corpus{a, b}.classes())
	for digit, rows := range font {
		for _, r := range rows {
			require.Len(t, r, 5, "digit %d", digit)
		}
	}
	require.Equal(t, 1.0, inkAt(1, 2, 3), "the middle of the 1")
	require.Equal(t, 0.5, inkAt(1, 2.5, 3), "its edge")
	require.Zero(t, inkAt(1, 9, 3), "far away")
}
