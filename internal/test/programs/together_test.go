package programs

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A seat carries out a rank's part of a program. The rank is one of size, which meet at the first ID, or if it comes in
// at its own one. It calls grow when another rank is to come in.
type seat func(number, size int, meets []bootstrap.ID, grow func(number, size int)) (report, error)

// together has the ranks of a program with Kills live, and compares what they report.
func (p *Program) together(sit seat) (of report, err error) {
	var meets []bootstrap.ID
	for range 1 + len(p.growths()) {
		id, err := ringo.Config{Log: slog.New(slog.DiscardHandler)}.NewID("127.0.0.1:0")
		if err != nil {
			return of, err
		}
		defer bootstrap.Stop(id)
		meets = append(meets, id)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	reports, errs := map[int]report{}, []error{}
	var begin func(number, size int)
	begin = func(number, size int) {
		all.Go(func() {
			asks := -1 // whom this rank has asked for, and may not live to meet
			r, err := sit(number, size, meets, func(late, size int) { asks = late - p.Ranks; begin(late, size) })
			if r.left && asks >= 0 {
				bootstrap.Gone(meets[1+asks], 0, "it was killed") // as a launcher says
			}
			if late := number - p.Ranks; r.left && late >= 0 {
				bootstrap.Gone(meets[1+late], size-1, "it was killed")
			}
			mu.Lock()
			defer mu.Unlock()
			if reports[number] = r; err != nil {
				errs = append(errs, fmt.Errorf("rank %d: %w", number, err))
			}
		})
	}
	for r := range p.Ranks {
		begin(r, p.Ranks)
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return of, err
	}
	for i, step := range p.growths() {
		if _, came := reports[p.Ranks+i]; !came && !p.leavesBefore(step) {
			return of, fmt.Errorf("want x: rank %d has not come in", p.Ranks+i)
		}
	}
	return p.compare(reports)
}

// compare reports whether all ranks that are left have ended in one group.
func (p *Program) compare(reports map[int]report) (of report, err error) {
	var stay []int
	for n, r := range reports {
		if of.calls, of.took = of.calls+r.calls, max(of.took, r.took); !r.left && r.lost == nil {
			stay = append(stay, n)
			of.who = r.who
		}
		if r.lost != nil && !p.leaves() || r.left != slices.Contains(p.leavers(), n) && r.lost == nil {
			return of, fmt.Errorf("rank %d has left: %v, it is lost: %w", n, r.left, r.lost)
		}
	}
	slices.Sort(stay)
	for _, n := range stay {
		who := strings.Fields(strings.Trim(reports[n].who, "[]"))
		if slices.Sort(who); fmt.Sprint(who) != fmt.Sprint(stay) {
			return of, fmt.Errorf("want x: rank %d goes on with %v, of %v", n, who, stay)
		}
	}
	return of, nil
}

// gpus are the emulated GPUs of this process, none on host memory.
func (p *Program) gpus() (*gpu.Machine, error) {
	if p.Host {
		return nil, nil
	}
	cfg := cudaemu.Config{Devices: p.Ranks + len(p.growths()), Seed: p.Seed}
	if tier.Race { // kernels that poll leave the other processes little of a core, and their news comes late
		cfg.Stall = time.Minute
	}
	return emulate(cfg)
}

func emulate(cfg cudaemu.Config) (*gpu.Machine, error) {
	d, err := cudaemu.New(cfg)
	if err != nil {
		return nil, err
	}
	return gpu.Of(d)
}

// survive is a rank's part, with GPUs unless those are nil.
func (p *Program) survive(m *gpu.Machine, number, size int, meets []bootstrap.ID, say func(string, ...any)) (report,
	error) {
	s := &survivor{p: p, number: number, meets: meets, say: say}
	if m != nil {
		var err error
		if s.d, err = m.Device(number); err != nil {
			return s.report, err
		}
	}
	err := s.live(size)
	return s.report, err
}

// inProcess has goroutines be the ranks.
func (p *Program) inProcess() (r report, err error) {
	m, err := p.gpus()
	if err != nil {
		return r, err
	}
	r, err = p.together(func(number, size int, meets []bootstrap.ID, grow func(number, size int)) (report, error) {
		return p.survive(m, number, size, meets, func(format string, args ...any) {
			grow(args[0].(int), args[1].(int)) // goroutines say nothing else
		})
	})
	if m != nil && err == nil {
		err = m.Close()
	}
	return r, err
}

// sit has this process be a rank at a seat.
func (p *Program) sit(at []string, say func(string, ...any)) (r report, err error) {
	number, bad := strconv.Atoi(at[0])
	size, err := strconv.Atoi(at[1])
	err = errors.Join(err, bad)
	var meets []bootstrap.ID
	for _, text := range at[2:] {
		id, bad := bootstrap.ParseID(text)
		meets, err = append(meets, id), errors.Join(err, bad)
	}
	if err != nil {
		return r, err
	}
	m, err := p.gpus()
	if err != nil {
		return r, err
	}
	r, err = p.survive(m, number, size, meets, say)
	if m != nil {
		err = errors.Join(err, m.Close())
	}
	return r, err
}
