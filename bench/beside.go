package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench/compute"
	"github.com/ringo-go/ringo/gpu"
)

// A Beside is how collectives and computing share a GPU: some collectives on one stream,
// and on another one kernels that fill all multiprocessors, which begin at the same time.
// Times are averages over ranks, of all collectives and of all computing.
type Beside struct {
	Collectives int  `json:"collectives"` // of a measurement
	Blocks      int  `json:"blocks"`      // of computing
	Alone       Span `json:"alone"`
	Compute     Span `json:"compute"` // computing alone
	Both        Span `json:"both"`    // until the later one ends
	// CollectivesBeside and ComputeBeside are when each of the two ended in Both.
	CollectivesBeside Span `json:"collectives_beside"`
	ComputeBeside     Span `json:"compute_beside"`

	Ideal  float64 `json:"ideal_us"` // the longer of the two alone
	Sum    float64 `json:"sum_us"`   // one after the other
	Slower float64 `json:"slower"`   // ComputeBeside in units of Compute
}

// A Span is a time in microseconds over several rounds: the median and the least.
type Span struct {
	Time float64 `json:"time_us"`
	Min  float64 `json:"min_us"`
}

func spanOf(us []float64) Span {
	us = slices.Sorted(slices.Values(us))
	n := len(us)
	return Span{(us[(n-1)/2] + us[n/2]) / 2, us[0]}
}

// besideOf completes a Beside. The times are of each round.
func besideOf(collectives, blocks int, alone, computing []float64, both []spans) *Beside {
	b := &Beside{Collectives: collectives, Blocks: blocks, Alone: spanOf(alone), Compute: spanOf(computing)}
	var all, comm, comp []float64
	for _, s := range both {
		all, comm, comp = append(all, s.both), append(comm, s.collectives), append(comp, s.computing)
	}
	b.Both, b.CollectivesBeside, b.ComputeBeside = spanOf(all), spanOf(comm), spanOf(comp)
	b.Ideal, b.Sum = max(b.Alone.Time, b.Compute.Time), b.Alone.Time+b.Compute.Time
	b.Slower = over(b.ComputeBeside.Time, b.Compute.Time)
	return b
}

// ofIdeal is how many times the ideal both take.
func (b *Beside) ofIdeal() float64 { return over(b.Both.Time, b.Ideal) }

// over is a/b, 0 where the clock saw nothing.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

const (
	besideEach   = 20                    // collectives of a measurement
	besideRounds = 9                     // of all measurements, in turn
	blockTime    = 40 * time.Microsecond // of a block of computing
	launchWaves  = 16                    // of a kernel, at most
)

// besideNote says what the columns of the table mean.
func besideNote(cfg *Config) string {
	amount := "about as long as the slowest program's collectives take"
	if cfg.BesideTime > 0 {
		amount = fmt.Sprintf("about %v", cfg.BesideTime)
	}
	return fmt.Sprintf("beside: kernels of up to %d waves of blocks, a block a multiprocessor and %v, for %s; times until all collectives and all of it have ended, medians of %d rounds in turn",
		launchWaves, blockTime, amount, cfg.Repetitions)
}

// A sharer is what a rank computes beside collectives, and how it takes their times.
type sharer struct {
	w      *worker
	kernel *compute.Kernel
	stream gpu.Stream // of computing
	// start is what both wait for, the others are when they have ended.
	start, collectives, computed gpu.Event
	meet                         ringo.Call // of all ranks, so that all start at once
	rounds                       int        // of a block
	wave                         float64    // µs that one takes
	delay                        time.Duration
	emulated                     bool
}

// newSharer loads the kernel and finds how much work a block gets.
func newSharer(w *worker) (s *sharer, err error) {
	dev := w.gpu.dev
	s = &sharer{w: w, emulated: dev.Driver().Name() == "emu"}
	if s.kernel, err = compute.New(dev); err != nil {
		return nil, fmt.Errorf("--beside: %w", err)
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
		s.meet = ringo.Call{Kind: ringo.KindAllReduce, In: r, Out: r, Count: 2, Type: ringo.Int32, Op: ringo.Sum, Stream: w.gpu.stream}
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

func (s *sharer) close() error {
	dev := s.w.gpu.dev
	errs := []error{s.kernel.Close()}
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

// calibrate finds the rounds of a block that take blockTime; rank 0 decides.
func (s *sharer) calibrate() error {
	if s.rounds = 1; s.emulated { // there times mean nothing
		s.wave = 1
		return nil
	}
	for range 3 { // the first one warms up
		us, err := s.timeOfWaves(launchWaves)
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
	us, err := s.timeOfWaves(launchWaves)
	s.wave = us / launchWaves
	return err
}

// timeOfWaves is how long waves take that nothing runs beside, in µs.
func (s *sharer) timeOfWaves(waves int) (us float64, err error) {
	dev := s.w.gpu.dev
	if err := dev.Record(s.start, s.stream); err != nil {
		return 0, err
	}
	if err := s.compute(waves); err != nil {
		return 0, err
	}
	if err := errors.Join(dev.Record(s.computed, s.stream), dev.Synchronize(s.stream)); err != nil {
		return 0, err
	}
	ms, err := dev.Elapsed(s.start, s.computed)
	return float64(ms) * 1e3, err
}

// compute queues waves of computing, in as few kernels as there may be.
func (s *sharer) compute(waves int) error {
	for ; waves > 0; waves -= launchWaves {
		if err := s.kernel.Launch(s.stream, min(waves, launchWaves), s.rounds); err != nil {
			return err
		}
	}
	return nil
}

// wavesOf is how many waves take about as long.
func (s *sharer) wavesOf(us float64) (int, error) {
	waves := 1.0
	if !s.emulated {
		waves = max(1, min(us/s.wave, 1e5))
	}
	n, err := s.w.ctl.decide(int64(math.Round(waves)))
	return int(n), err
}

// spans are when collectives and computing have ended after their common start, and the
// later of the two, in µs, averages over ranks.
type spans struct{ collectives, computing, both float64 }

// measure runs collectives, computing, or both: do is nil or waves 0 for none. Nothing
// starts before all of it is queued: the start comes after a delay, a kernel of one block,
// and after a small all-reduce, so that it is the same on all GPUs.
func (s *sharer) measure(do func() error, waves int) (x spans, err error) {
	w, dev := s.w, s.w.gpu.dev
	if err := w.ctl.barrier(); err != nil {
		return x, err
	}
	wait := int(float64(s.rounds) * float64(s.delay) / float64(blockTime))
	if err := errors.Join(s.kernel.Blocks(w.gpu.stream, 1, max(1, wait)), w.comm.Do(&s.meet), dev.Record(s.start, w.gpu.stream)); err != nil {
		return x, err
	}
	begin := time.Now()
	if waves > 0 {
		if err := errors.Join(dev.WaitEvent(s.stream, s.start), s.compute(waves), dev.Record(s.computed, s.stream)); err != nil {
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

// A side is one program's part of a measurement.
type side struct {
	program string
	op      *operation
	do      func() error // all collectives of a measurement
	graph   *gpu.Graph
	alone   []float64
	both    []spans
	wrong   *int64
}

// rows measures the collectives of all programs at one size, alone and beside the same
// computing, in turn.
func (s *sharer) rows(ser *series, count int) (ours Row, others map[string]*Row, err error) {
	w := s.w
	sides, each, err := s.sides(ser, count)
	defer func() {
		for _, x := range sides {
			if x.graph != nil {
				err = errors.Join(err, x.graph.Close())
			}
		}
	}()
	if err != nil {
		return ours, nil, err
	}
	amount := float64(w.cfg.BesideTime.Microseconds())
	for _, x := range sides { // the second time counts
		for range 2 {
			took, err := s.measure(x.do, 0)
			if err != nil {
				return ours, nil, err
			}
			if w.cfg.BesideTime == 0 {
				amount = max(amount, took.collectives)
			}
		}
	}
	waves, err := s.wavesOf(amount)
	if err != nil {
		return ours, nil, err
	}
	var computing []float64
	for round := range w.cfg.Repetitions + 1 { // one to warm up
		x, err := s.measure(nil, waves)
		if err != nil {
			return ours, nil, err
		}
		if round > 0 {
			computing = append(computing, x.computing)
		}
		for i := range sides {
			x := sides[(round+i)%len(sides)]
			alone, err := s.measure(x.do, 0)
			if err != nil {
				return ours, nil, err
			}
			both, err := s.measure(x.do, waves)
			if err != nil {
				return ours, nil, err
			}
			if round > 0 {
				x.alone, x.both = append(x.alone, alone.collectives), append(x.both, both)
			}
		}
	}
	others = map[string]*Row{}
	for _, x := range sides {
		if w.cfg.Check {
			wrong, err := w.verify(ser, x.op)
			if err != nil {
				return ours, nil, err
			}
			x.wrong = &wrong
		}
		row := x.row(ser, count, w.comm.Size(), each, besideOf(each, waves*s.kernel.Wave(), x.alone, computing, x.both))
		if x.program == "ringo" {
			ours = *row
		} else {
			others[x.program] = row
		}
	}
	return ours, others, nil
}

// sides prepares the collectives of all programs that have them, and says how many are in
// a measurement.
func (s *sharer) sides(ser *series, count int) (list []*side, each int, err error) {
	w := s.w
	programs := []string{"ringo"}
	if w.nccl != nil && w.nccl.offers(ser) {
		programs = append(programs, "nccl")
	}
	batch := max(1, w.cfg.Graph)
	launches := (w.cfg.Iterations + batch - 1) / batch
	for _, program := range programs {
		x := &side{program: program, op: w.operation(program, ser, count, false)}
		list = append(list, x)
		if err := w.zero(x.op); err != nil {
			return list, 0, err
		}
		if _, err := w.loop(max(1, w.cfg.Warmup), x.op.do); err != nil {
			return list, 0, err
		}
		do := x.op.do
		if w.cfg.Graph > 0 {
			if x.graph, err = w.capture(x.op); err != nil {
				return list, 0, err
			}
			do = func() error { return x.graph.Launch(w.gpu.stream) }
		}
		x.do = func() error {
			for range launches {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return list, launches * batch * w.cfg.Group, nil
}

// row is the row of a program. Its Measure is of a collective alone.
func (x *side) row(ser *series, count, ranks, each int, b *Beside) *Row {
	size := ser.Size(count, ranks, ser.typ.Size())
	r := &Row{
		Program: x.program, Collective: ser.Name, Size: size, Count: count, Type: ser.typ.String(), Op: ser.opName(), Root: ser.rootNumber(),
		OutOfPlace: measure(ser.Collective, size, ranks, b.Alone.Time/float64(each), each), Beside: b,
	}
	r.OutOfPlace.Min, r.OutOfPlace.Wrong = b.Alone.Min/float64(each), x.wrong
	return r
}
