package bench

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench/meter"
	"github.com/ringo-go/ringo/gpu"
)

// A contender computes on a rank's GPU beside collectives, and takes the times of both.
type contender struct {
	w       *worker
	load    *meter.Load
	product *meter.Product // what it computes, or nil for waves of blocks
	stream  gpu.Stream     // of computing
	// start is the event that both wait for; the others come when each has ended.
	start, collectives, computed gpu.Event
	meet                         ringo.Call // of all ranks, so that all start at once
	rounds                       int        // of a block
	wave                         float64    // µs of a wave of blocks, or of a product
	delay                        time.Duration
	emulated                     bool
}

// newContender loads the kernel and finds how much work a block gets.
func newContender(w *worker) (s *contender, err error) {
	dev := w.gpu.dev
	s = &contender{w: w, emulated: dev.Driver().Name() == "emu"}
	if s.load, err = meter.NewLoad(dev); err != nil {
		return nil, fmt.Errorf("-beside: %w", err)
	}
	if w.cfg.BesideProduct > 0 {
		if s.product, err = meter.NewProduct(s.load, w.cfg.CUBLAS); err != nil {
			return nil, fmt.Errorf("-beside: %w", errors.Join(err, s.close()))
		}
	}
	if s.stream, err = dev.NewStream(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	for _, e := range []*gpu.Event{&s.start, &s.collectives, &s.computed} {
		if *e, err = dev.NewEvent(); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	r, err := dev.Alloc(8)
	if err == nil {
		s.meet = ringo.Call{Kind: ringo.KindAllReduce, In: r, Out: r, Count: 2, Type: ringo.Int32, Op: ringo.Sum,
			Stream: w.gpu.stream}
		err = dev.Set(r.Ptr(), 0, 8, w.gpu.stream)
	}
	if err == nil {
		err = s.calibrate()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *contender) close() error {
	dev := s.w.gpu.dev
	var errs []error
	if s.product != nil {
		errs = append(errs, s.product.Close())
	}
	errs = append(errs, s.load.Close())
	if s.stream != 0 {
		errs = append(errs, dev.DestroyStream(s.stream))
	}
	for _, e := range []gpu.Event{s.start, s.collectives, s.computed} {
		if e != 0 {
			errs = append(errs, dev.DestroyEvent(e))
		}
	}
	if !s.meet.In.IsNil() {
		errs = append(errs, dev.Free(s.meet.In))
	}
	return errors.Join(errs...)
}

// calibrate finds the rounds of a block that take blockTime, and the depth of a product that takes the time
// that was asked for; rank 0 decides.
func (s *contender) calibrate() error {
	err := s.calibrateWaves()
	if err == nil && s.product != nil {
		err = s.calibrateProduct()
	}
	return err
}

// A product is of side × depth and depth × side elements; its depth follows from the time that it shall take.
const (
	productSide  = 8192
	shortSide    = 4096 // of products that take less than shortProduct
	shortProduct = 250 * time.Microsecond
	firstDepth   = 1024
	mostDepth    = 64 << 10
	depthUnit    = 64
)

func (s *contender) calibrateProduct() error {
	want, side, depth := s.w.cfg.BesideProduct, productSide, firstDepth
	if want < shortProduct {
		side = shortSide
	}
	if s.emulated {
		return s.product.Shape(depthUnit, 1)
	}
	for round := 0; ; round++ {
		if err := s.product.Shape(side, depth); err != nil {
			return err
		}
		const several = 8
		if _, err := s.timeOf(several); err != nil { // to warm up
			return err
		}
		us, err := s.timeOf(several)
		if s.wave = us / several; err != nil || round == 2 {
			return err
		}
		next := float64(depth) * float64(want.Nanoseconds()) / 1e3 / max(s.wave, 0.1)
		all, err := s.w.ctl.decide(int64(max(depthUnit, min(next, mostDepth))))
		if err != nil {
			return err
		}
		depth = int(all+depthUnit/2) / depthUnit * depthUnit
	}
}

func (s *contender) calibrateWaves() error {
	product := s.product
	s.product = nil
	defer func() { s.product = product }()
	if s.rounds = 1; s.emulated { // there times mean nothing
		s.wave = 1
		return nil
	}
	for range 3 { // the first one warms up
		us, err := s.timeOf(launchWaves)
		if err != nil {
			return err
		}
		want := float64(s.rounds) * float64(blockTime.Microseconds()) / max(us/launchWaves, 0.1)
		rounds, err := s.w.ctl.decide(int64(max(1, min(want, 1e6))))
		if err != nil {
			return err
		}
		s.rounds = int(rounds)
	}
	us, err := s.timeOf(launchWaves)
	s.wave = us / launchWaves
	return err
}

// timeOf is the time of units of computing alone, in µs.
func (s *contender) timeOf(units int) (us float64, err error) {
	dev := s.w.gpu.dev
	if err := dev.Record(s.start, s.stream); err != nil {
		return 0, err
	}
	if err := s.compute(units); err != nil {
		return 0, err
	}
	if err := errors.Join(dev.Record(s.computed, s.stream), dev.Synchronize(s.stream)); err != nil {
		return 0, err
	}
	ms, err := dev.Elapsed(s.start, s.computed)
	return float64(ms) * 1e3, err
}

// compute queues products, or waves of blocks in as few kernels as possible.
func (s *contender) compute(waves int) error {
	if s.product != nil {
		for range waves {
			if err := s.product.Launch(s.stream); err != nil {
				return err
			}
		}
		return nil
	}
	for ; waves > 0; waves -= launchWaves {
		if err := s.load.Launch(s.stream, min(waves, launchWaves), s.rounds); err != nil {
			return err
		}
	}
	return nil
}

// wavesOf is how many waves, or products, take about us µs; rank 0 decides.
func (s *contender) wavesOf(us float64) (int, error) {
	waves := 1.0
	if !s.emulated {
		waves = max(1, min(us/s.wave, 1e5))
	}
	n, err := s.w.ctl.decide(int64(math.Round(waves)))
	return int(n), err
}

// ends are when collectives and computing have ended after their common start, and the
// later of the two, in µs, averages over ranks.
type ends struct{ collectives, computing, both float64 }

// measure runs collectives (do, or nil), computing (waves, or 0), or both. Nothing starts
// before everything is queued: the start comes after a delay, which is a kernel of one
// block, and after a small all-reduce, so that all GPUs start at the same time.
func (s *contender) measure(do func() error, waves int) (x ends, err error) {
	w, dev := s.w, s.w.gpu.dev
	if err := w.ctl.barrier(); err != nil {
		return x, err
	}
	wait := int(float64(s.rounds) * float64(s.delay) / float64(blockTime))
	if err := errors.Join(s.load.Blocks(w.gpu.stream, 1, max(1, wait)), w.comm.Do(&s.meet),
		dev.Record(s.start, w.gpu.stream)); err != nil {
		return x, err
	}
	begin := time.Now()
	if waves > 0 {
		if err := errors.Join(dev.WaitEvent(s.stream, s.start), s.compute(waves),
			dev.Record(s.computed, s.stream)); err != nil {
			return x, err
		}
	}
	if do != nil {
		if err := errors.Join(do(), dev.Record(s.collectives, w.gpu.stream)); err != nil {
			return x, err
		}
	}
	if took := time.Since(begin); took > s.delay*4/5 && !s.emulated {
		s.delay = min(took*3/2, 50*time.Millisecond)
	}
	if err := errors.Join(w.comm.Synchronize(w.gpu.stream), dev.Synchronize(s.stream)); err != nil {
		return x, err
	}
	for _, e := range []struct {
		ran bool
		end gpu.Event
		us  *float64
	}{{do != nil, s.collectives, &x.collectives}, {waves > 0, s.computed, &x.computing}} {
		if e.ran {
			ms, err := dev.Elapsed(s.start, e.end)
			if err != nil {
				return x, err
			}
			*e.us = float64(ms) * 1e3
		}
	}
	x.both = max(x.collectives, x.computing)
	for _, us := range []*float64{&x.collectives, &x.computing, &x.both} {
		sum, err := w.ctl.sum(*us)
		if err != nil {
			return x, err
		}
		*us = sum / float64(w.comm.Size())
	}
	return x, nil
}
