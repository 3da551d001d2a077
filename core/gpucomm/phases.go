// Calls across hosts in phases, each a program of its own.

package gpucomm

import (
	"cmp"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
)

// phasesFrom is the size from which phases are used, in bytes of the larger buffer: each further launch takes some 10
// µs, and phases do not overlap.
const phasesFrom = 4 << 20

// phases are the keys of the programs that carry out a call one after the other, the same
// on all ranks; none if one program does it all.
func (q *queue) phases(c *call.Call, t *task) (keys []choice.Key) {
	r := &t.request
	if c.Bytes()*c.Kind.Shares(q.Life.Size) < cmp.Or(q.chooser.PhasesFrom, phasesFrom) {
		return nil
	}
	if keys, known := q.phased[r.Key]; known {
		return keys
	}
	if n := r.Key.Phases(q.chooser.Topo); n > 1 {
		for i := range n {
			key := r.Key
			key.Phase = uint8(i + 1)
			keys = append(keys, key)
		}
	}
	q.phased[r.Key] = keys
	return keys
}

// inPhases queues a job by the programs of phases instead of its own. All are compiled, and their kernels loaded,
// before the first is queued: loading may wait for that one's kernel, and the kernel for a peer that waits for us.
func (q *queue) inPhases(keys []choice.Key, j *grid.Job) error {
	for _, key := range keys {
		if _, err := q.program(key); err != nil {
			return err
		}
	}
	if err := q.engine.Prepare(j.Reducer); err != nil {
		return err
	}
	for i, key := range keys {
		j.Program, j.Continues, j.More = q.programs[key], i > 0, i < len(keys)-1
		if err := q.carry(j); err != nil {
			return err
		}
	}
	return nil
}
