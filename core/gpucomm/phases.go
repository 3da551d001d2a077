// Calls across hosts in phases, each a program of its own.

package gpucomm

import "github.com/ringo-go/ringo/engine/grid"

// preparePhases compiles the programs of a call's phases, and loads their kernels, before the first is queued: loading
// may wait for that one's kernel, and the kernel for a peer that waits for us.
func (q *queue) preparePhases(t *task) error {
	key := t.request.Key
	for i := range t.answer.Phases {
		key.Phase = uint8(i + 1)
		if _, err := q.program(key); err != nil {
			return err
		}
	}
	return q.engine.Prepare(t.request.Reducer)
}

// inPhases queues a job by the programs of its phases instead of its own.
func (q *queue) inPhases(t *task, j *grid.Job) error {
	if err := q.preparePhases(t); err != nil {
		return err
	}
	key, n := t.request.Key, t.answer.Phases
	for i := range n {
		key.Phase = uint8(i + 1)
		j.Program, j.Continues, j.More = q.programs[key], i > 0, i < n-1
		if err := q.carry(j, &t.answer); err != nil {
			return err
		}
	}
	return nil
}
