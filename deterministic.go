package ringo

import (
	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
)

// rankOrder is the word of Config.Deterministic.
const rankOrder = "rank order"

// algoByRank stands for reductions in order of rank that are composed of other
// collectives: the contributions are moved to where they are combined, by
// kernels.Reducer.CombineAll or its kernel, and the results to who wants them. It
// cannot be asked for by Config.Algo.
const algoByRank algo = 0xff

// byRank reports whether a call has to be combined in order of rank.
func (c *Comm) byRank(call *Call) bool {
	return c.cfg.Deterministic != "" && orderMatters(call.Kind, call.Type, call.Op.Kind, c.size)
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

// contributions says which shares CombineAll has to scale: all, but for PreMulSum
// none. Ranks may have different scales there, so each scales, and rounds, what it
// sends.
func contributions(op kernels.Kind) uint64 {
	if op == kernels.KindPreMulSum {
		return 0
	}
	return ^uint64(0)
}

// byRankBytes bounds the shares that a rank holds at a time, so that they stay in
// its cache: larger data goes in pieces.
const byRankBytes = 2 << 20

// byRankWhole is up to which size an all-reduce sends everything to everybody,
// which takes one hop less.
const byRankWhole = 16 << 10

// A combination is what the host half needs for reductions in order of rank.
type combination struct {
	shares      []byte
	srcs        [][]byte
	offsets, ns []int // of the pieces of a reduce-scatter
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
	var in, out []byte
	if r.in > 0 {
		in = call.In.Bytes()[:r.in]
	}
	if r.out > 0 {
		out = call.Out.Bytes()[:r.out]
	}
	b := &c.combination
	if b.srcs == nil {
		b.srcs, b.offsets, b.ns = make([][]byte, c.size), make([]int, c.size), make([]int, c.size)
	}
	share := shareOf(byRankBytes, c.size)
	switch {
	case call.Kind == KindReduce:
		err = c.reduceByRank(&r, in, out, share)
	case call.Kind == KindReduceScatter:
		err = c.reduceScatterByRank(&r, in, out, share)
	case r.in <= min(byRankWhole, share):
		err = c.oneShotByRank(&r, in, out)
	default:
		err = c.twoShotByRank(&r, in, out, share)
	}
	if err != nil {
		return c.fail(call, err)
	}
	return nil
}

// shareOf divides room among ranks.
func shareOf(room, ranks int) int { return max(64, room/ranks&^63) }

// even is a Layout of n chunks of the same length.
func even(n, chunk int) engine.Layout { return engine.Layout{Total: n * chunk, Chunk: chunk} }

func (c *Comm) oneShotByRank(r *request, in, out []byte) error {
	n := len(in)
	shares := c.room(c.size * n)
	if err := c.move(r, KindAllGather, -1, in, even(1, n), shares, even(c.size, n), r.scaler()); err != nil {
		return err
	}
	c.combine(r, out, shares)
	return nil
}

func (c *Comm) twoShotByRank(r *request, in, out []byte, share int) error {
	for at := 0; at < len(in); at += share * c.size {
		from, to := in[at:min(at+share*c.size, len(in))], out[at:min(at+share*c.size, len(out))]
		l := engine.Even(len(from), c.size, r.size)
		off, n := l.Span(c.rank)
		shares := c.room(c.size * n)
		if err := c.move(r, KindAlltoAll, -1, from, l, shares, even(c.size, n), r.scaler()); err != nil {
			return err
		}
		mine := to[off : off+n]
		c.combine(r, mine, shares)
		if err := c.move(r, KindAllGather, -1, mine, even(1, n), to, l, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *Comm) reduceByRank(r *request, in, out []byte, share int) error {
	for at := 0; at == 0 || at < len(in); at += share {
		end := min(at+share, len(in))
		var shares []byte
		if c.rank == int(r.key.peer) {
			shares = c.room(c.size * (end - at))
		}
		if err := c.move(r, KindGather, r.key.peer, in[at:end], even(1, end-at), shares, even(c.size, end-at), r.scaler()); err != nil {
			return err
		}
		if shares != nil {
			c.combine(r, out[at:end], shares)
		}
	}
	return nil
}

func (c *Comm) reduceScatterByRank(r *request, in, out []byte, share int) error {
	b := &c.combination
	for at := 0; at == 0 || at < len(out); at += share {
		end := min(at+share, len(out))
		for p := range c.size {
			b.offsets[p], b.ns[p] = p*len(out)+at, end-at
		}
		shares := c.room(c.size * (end - at))
		l := engine.Layout{Off: b.offsets, Len: b.ns}
		if err := c.move(r, KindAlltoAll, -1, in, l, shares, even(c.size, end-at), r.scaler()); err != nil {
			return err
		}
		c.combine(r, out[at:end], shares)
	}
	return nil
}

// scaler is what scales contributions on their way, nil if nothing does.
func (r *request) scaler() *kernels.Reducer {
	if r.op == kernels.KindPreMulSum {
		return r.reducer
	}
	return nil
}

// room is n bytes for shares.
func (c *Comm) room(n int) []byte {
	b := &c.combination
	if len(b.shares) < n {
		b.shares = make([]byte, n)
	}
	return b.shares[:n]
}

// move carries out a collective that is part of a reduction.
func (c *Comm) move(r *request, kind Kind, peer int32, in []byte, inL engine.Layout, out []byte, outL engine.Layout, scaler *kernels.Reducer) error {
	a, _ := choosePlan(kind, c.topo, outL.Chunk, algoAuto) // which is alike on all ranks
	p, err := c.compile(programKey{kind: kind, algo: a, peer: peer})
	if err != nil {
		return err
	}
	j := &c.job
	j.Program, j.Reducer, j.Stamp, j.Lend = p, scaler, r.stamp, true
	j.In, j.Out, j.InL, j.OutL = in, out, inL, outL
	err = c.engine.Run(j)
	j.In, j.Out = nil, nil
	return err
}

// combine is dst = all ranks' shares.
func (c *Comm) combine(r *request, dst, shares []byte) {
	srcs, n := c.combination.srcs, len(dst)
	for i := range srcs {
		srcs[i] = shares[i*n : (i+1)*n]
	}
	r.reducer.CombineAll(dst, srcs, contributions(r.op), true)
	clear(srcs)
}
