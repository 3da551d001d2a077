package command

import (
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

// A question is the collective, and the circumstances, that explain and sim are about.
type question struct {
	bench.Collective
	ranks, root int
	node        int // ranks of a host; 0: all are on one
	typ         ringo.DataType
	algo        string
	order       string      // ringo.Config.Deterministic
	gpus        *ringo.GPUs // nil for host memory
	plan        string      // file; "" for the built-in plans
	policy      string      // ringo.Config.BlockPolicy
	most, least int         // MaxBlocks and MinBlocks
	mbps        int         // ringo.Config.HostMbps
}

// choice answers the question for a size in bytes, as bench counts them.
func (q question) choice(size int64) (ringo.Choice, error) {
	width := q.typ.Size()
	bytes, cfg := q.Count(size, q.ranks, width)*width, ringo.Config{
		Algo: q.algo, Plan: q.plan, Deterministic: q.order, BlockPolicy: q.policy, MaxBlocks: q.most, MinBlocks: q.least,
		HostMbps: q.mbps,
	}
	if q.gpus != nil {
		return ringo.ExplainDevice(q.Kind, q.ranks, q.node, bytes, q.root, *q.gpus, cfg)
	}
	return ringo.Explain(q.Kind, q.ranks, q.node, bytes, q.root, cfg)
}

// ask makes a question of the flags that explain and sim have in common, and checks what one flag does not tell.
func ask(names []string, ranks, root, node int, typ ringo.DataType, algo string) (question, error) {
	q := question{ranks: ranks, root: root, node: node, typ: typ, algo: algo}
	if len(names) != 1 {
		return q, cli.Usagef("which collective? give one of %s", strings.Join(bench.Names(), ", "))
	}
	var err error
	if q.Collective, err = bench.Find(names[0]); err != nil {
		return q, err
	}
	switch {
	case q.Kind == ringo.KindSend:
		return q, cli.Usagef("sendrecv is one message to the next rank and has no algorithm")
	case root >= ranks:
		return q, cli.Usagef("-r %d: the ranks are 0 to %d", root, ranks-1)
	}
	return q, nil
}
