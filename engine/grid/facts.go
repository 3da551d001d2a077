package grid

import "github.com/ringo-go/ringo/kernels/collective"

// Facts returns what a job's carrier depends on. It loads the kernels of bulk copies that the job may need. Ranks find
// the same Message and Messages; in the others they may differ.
func (e *Engine) Facts(j *Job) (f collective.Facts, err error) {
	p := j.Program
	f = collective.Facts{
		Lanes: j.lanes(), LingerLanes: e.linger.Blocks,
		Message: p.message(), Independent: p.independent, Messages: p.independent && j.Each != nil,
		Captured: j.Capture != 0, Uneven: !j.even(),
		Aligned: e.uneven || (j.Reducer != nil || evenly(uint64(j.In.Ptr()), &j.InL)) && evenly(uint64(j.Out.Ptr()), &j.OutL),
		Vectors: j.Reducer != nil || inVectors(j.In, &j.InL) && inVectors(j.Out, &j.OutL),
	}
	if f.Message || f.Messages {
		return f, nil
	}
	if f.Aligned {
		m, _, err := e.bulkModule(j.Reducer, p.shared())
		if err != nil {
			return f, err
		}
		f.Bulk = m != nil
	}
	if f.Independent {
		f.OneLaunch = e.atOnce(j)
		f.Disjoint = f.OneLaunch && j.disjoint()
	}
	return f, nil
}
