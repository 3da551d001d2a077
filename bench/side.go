package bench

import (
	"errors"

	"github.com/ringo-go/ringo/gpu"
)

// A side is one program's part of a measurement.
type side struct {
	program string
	op      *operation
	do      func() error // all collectives of a measurement
	graph   *gpu.Graph
	alone   []float64
	both    []ends
	wrong   *int64
}

// rows measures the collectives of all programs at one size, alone and beside the same
// computing, in turn.
func (s *contender) rows(ser *series, count int) (ours Row, others map[string]*Row, err error) {
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
	waves, err := s.wavesBeside(sides)
	if err != nil {
		return ours, nil, err
	}
	computing, err := s.inTurn(sides, waves)
	if err != nil {
		return ours, nil, err
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
		beside := besideOf(each, waves*s.load.Wave(), x.alone, computing, x.both)
		if s.product != nil {
			beside.Computing = s.product.Name()
		}
		row := ser.row(x.program, count, w.comm.Size(), beside.Alone.Time/float64(each), each) // of a collective alone
		row.Beside, row.OutOfPlace.Min, row.OutOfPlace.Wrong = beside, beside.Alone.Min/float64(each), x.wrong
		if x.program == "ringo" {
			ours = row
		} else {
			others[x.program] = &row
		}
	}
	return ours, others, nil
}

// wavesBeside is how many waves of computing fill the time of -beside-time, or without it the time of the slowest side.
func (s *contender) wavesBeside(sides []*side) (int, error) {
	amount := float64(s.w.cfg.BesideTime.Microseconds())
	for _, x := range sides { // the second time counts
		for range 2 {
			took, err := s.measure(x.do, 0)
			if err != nil {
				return 0, err
			}
			if s.w.cfg.BesideTime == 0 {
				amount = max(amount, took.collectives)
			}
		}
	}
	return s.wavesOf(amount)
}

// inTurn measures in each repetition the computing alone, which is returned, and every side alone and beside the
// computing.
func (s *contender) inTurn(sides []*side, waves int) (computing []float64, err error) {
	for round := range s.w.cfg.Repetitions + 1 { // one to warm up
		x, err := s.measure(nil, waves)
		if err != nil {
			return nil, err
		}
		if round > 0 {
			computing = append(computing, x.computing)
		}
		for _, x := range inTurn(sides, round) {
			alone, err := s.measure(x.do, 0)
			if err != nil {
				return nil, err
			}
			both, err := s.measure(x.do, waves)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				x.alone, x.both = append(x.alone, alone.collectives), append(x.both, both)
			}
		}
	}
	return computing, nil
}

// sides prepares the collectives of all programs that have them, and returns how many are
// in a measurement.
func (s *contender) sides(ser *series, count int) (list []*side, each int, err error) {
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
