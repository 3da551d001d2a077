package gpucomm

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/sched"
)

// programs are the compiled schedules of a communicator.
type programs struct {
	engine  *grid.Engine
	chooser *choice.Chooser
	rank    sched.Rank
	of      map[choice.Key]*grid.Program
}

func newPrograms(e *grid.Engine, chooser *choice.Chooser, rank int) *programs {
	return &programs{engine: e, chooser: chooser, rank: sched.Rank(rank), of: map[choice.Key]*grid.Program{}}
}

// find finds or makes the program of a key.
func (p *programs) find(key choice.Key) (*grid.Program, error) {
	if found := p.of[key]; found != nil {
		return found, nil
	}
	made, err := p.engine.Compile(key.Schedule(p.chooser.Topo), p.rank)
	if err == nil {
		p.of[key] = made
	}
	return made, err
}

// phases compiles the programs of the phases of a call.
func (p *programs) phases(key choice.Key, n uint8) error {
	for i := range n {
		key.Phase = i + 1
		if _, err := p.find(key); err != nil {
			return err
		}
	}
	return nil
}

// run queues a job for a schedule of an answer, by the way that the answer takes for its facts.
func (p *programs) run(ans *choice.Answer, j *grid.Job) error {
	e := p.engine
	f, err := e.Facts(j)
	if err != nil {
		return err
	}
	return e.Run(j, ans.Way(&f))
}

// A prepared names calls that have the same kernels.
type prepared struct {
	by     choice.Carrier
	kernel collective.Direct
	kind   call.Kind
	typ    kernels.DataType
	op     kernels.Kind
	norm   bool
}

func whatOf(c *call.Call, ans *choice.Answer) prepared {
	return prepared{ans.By, ans.Kernel, c.Kind, c.Type, c.Op.Kind, c.Norm != nil}
}
