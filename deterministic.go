package ringo

import (
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// rankOrder is the word of Config.Deterministic.
const rankOrder = "rank order"

// algoByRank stands for reductions in order of rank that are composed of other
// collectives: the contributions are moved to where they are combined, by
// kernels.Reducer.CombineAll or its kernel, and the results to who wants them. It
// cannot be asked for by Config.Algo.
const algoByRank algo = 0xff

func (c *Config) checkOrder() error {
	if c.Deterministic != "" && c.Deterministic != rankOrder {
		return fmt.Errorf("%w: Deterministic is %q, want %q or nothing", ErrInvalid, c.Deterministic, rankOrder)
	}
	return nil
}

// byRank reports whether a call has to be combined in order of rank.
func (c *Config) byRank(call *Call, ranks int) bool {
	return c.Deterministic != "" && orderMatters(call.Kind, call.Type, call.Op.Kind, ranks)
}

// orderMatters reports whether algorithms may give different bits. Integers wrap,
// Max and Min select, and the sum of two floats is the same either way; but some
// algorithms round scaled contributions of narrow floats, and some do not.
func orderMatters(kind Kind, t DataType, op kernels.Kind, ranks int) bool {
	switch {
	case !kind.Reduces() || ranks == 1:
		return false
	case op == kernels.KindUser:
		return true
	case t < Float16 || op == kernels.KindMax || op == kernels.KindMin:
		return false
	case ranks > 2:
		return true
	}
	scales := op == kernels.KindAvg || op == kernels.KindPreMulSum
	return scales && t.Size() < Float32.Size()
}

// roomOnHost has shares stay in a core's cache; see fold for both.
const (
	roomOnHost  = 2 << 20
	wholeOnHost = 16 << 10
)

// A hostPlace is the workplace in host memory.
type hostPlace struct {
	c     *Comm
	rooms [allRooms][]byte
	srcs  [][]byte
}

// carryOutByRank is carryOut for a call on host memory in order of rank.
func (c *Comm) carryOutByRank(call *Call) error {
	if err := c.begin(call); err != nil {
		return err
	}
	r, err := c.request(call, algoByRank)
	if err != nil {
		return c.fail(call, err)
	}
	if c.fold == nil {
		c.fold = newFold(c, &hostPlace{c: c, srcs: make([][]byte, c.size)}, wholeOnHost, roomOnHost)
	}
	if err := c.fold.run(r, call.Kind, call.In.Slice(0, r.in), call.Out.Slice(0, r.out)); err != nil {
		return c.fail(call, err)
	}
	return nil
}

func (h *hostPlace) room(which rooms, n int) (Region, error) {
	if len(h.rooms[which]) < n {
		h.rooms[which] = make([]byte, n)
	}
	return mem.Host(h.rooms[which][:n]), nil
}

func (h *hostPlace) move(r *request, kind Kind, in Region, inL engine.Layout, out Region, outL engine.Layout) error {
	a, _ := choosePlan(kind, h.c.topo, outL.Chunk, algoAuto) // which is alike on all ranks
	p, err := h.c.compile(r.part(kind, a))
	if err != nil {
		return err
	}
	j := &h.c.job
	j.Program, j.Reducer, j.Stamp, j.Lend = p, nil, r.stamp, true
	j.In, j.Out, j.InL, j.OutL = in.Bytes(), out.Bytes(), inL, outL
	err = h.c.engine.Run(j)
	j.In, j.Out = nil, nil
	return err
}

func (h *hostPlace) combine(r *request, dst, srcs Region, contributions uint64, finish bool) error {
	n := dst.Len()
	if n == 0 {
		return nil
	}
	list := h.srcs[:srcs.Len()/n]
	for i := range list {
		list[i] = srcs.Slice(i*n, n).Bytes()
	}
	r.reducer.CombineAll(dst.Bytes(), list, contributions, finish)
	clear(list)
	return nil
}
