package capi

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/sched/sim"
)

// GroupSimulateEnd ends the thread's group like GroupEnd, but throws its calls away. It writes the time that
// they would take into the ncclSimInfo_t at the address info, unless that is 0. The group ends also after an error.
// left is the handle of the thread's group from now on.
func (l *Library) GroupSimulateEnd(handle, info uintptr) (left uintptr, err error) {
	defer caught(&err)
	g, err := l.leave(handle)
	if err != nil {
		return handle, err
	}
	microseconds := 0.0
	if err = g.err; err == nil && info != 0 {
		if f := simInfo(info); f.size < simBytes || f.magic != simMagic {
			err = fmt.Errorf("%w: ncclSimInfo_t: begin with NCCL_SIM_INFO_INITIALIZER", ringo.ErrInvalid)
		}
	}
	if err == nil {
		microseconds, err = g.estimate()
	}
	g.throwAway(fmt.Errorf("%w: a group that ncclGroupSimulateEnd ends makes no communicator", errUsage))
	g.run = ringo.Group{}
	g.recycle()
	if info != 0 && err == nil {
		simInfo(info).estimatedTime = float32(microseconds)
	}
	return 0, err
}

// estimate is the microseconds that the calls of a group take under the link model of package sim
// for shared memory, or for NVLink on GPUs, by the algorithms of the host. A communicator's calls
// follow each other, and communicators run side by side.
func (g *group) estimate() (float64, error) {
	times := map[*ringo.Comm]float64{}
	longest := 0.0
	for i, call := range g.calls[:g.used] {
		r := g.rings[i]
		model := sim.SharedMemory
		if r.Device() != nil {
			model = sim.NVLink
		}
		t, err := timeOf(call, r.Size(), model)
		if err != nil {
			return 0, err
		}
		times[r] += 1e6 * t
		longest = max(longest, times[r])
	}
	return longest, nil
}

// rounds is the most rounds of a large collective that are simulated.
const rounds = 16

// timeOf is the simulated seconds of a call.
func timeOf(call *ringo.Call, ranks int, model sim.Model) (float64, error) {
	switch {
	case ranks == 1:
		return 0, nil
	case call.Kind.Pairwise():
		return model.Intra.Latency + model.Intra.Overhead + float64(call.Bytes())/model.Intra.Bandwidth, nil
	}
	ch, err := ringo.Explain(call.Kind, ranks, 0, call.Bytes(), call.Root, ringo.Config{})
	if err != nil {
		return 0, err
	}
	res, err := sim.Run(context.Background(), ch.Schedule, model, int64(call.Bytes()*call.Kind.Shares(ranks)),
		sim.Options{MaxRounds: rounds})
	return res.Time, err
}
