// Package book is the book of algorithms: which schedules carry out which collective, an
// algorithm a line. Communicators choose from it (core/choice), and "ringo play" shows it.
//
// The trap: programs add algorithms of their own to what communicators choose from, by
// ringo.Define. Those are not here.
package book

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// A Collective is a goal under the name that commands have for it, and the algorithms that reach
// the goal, the default first.
type Collective struct {
	Name       string
	Rooted     bool
	Goal       func(root sched.Rank) sched.Goal
	Algorithms []Algorithm
}

// An Algorithm makes schedules, for any number of ranks: by Flat, or by Nodes where ranks lie on
// several nodes. One of the two is nil.
type Algorithm struct {
	Name  string
	Flat  func(n int, root sched.Rank) sched.Schedule
	Nodes func(nodes hier.Nodes, root sched.Rank) sched.Schedule
	Even  bool // Nodes is for equally many ranks on each node
}

func flat(name string, f func(n int) sched.Schedule) Algorithm {
	return Algorithm{Name: name, Flat: func(n int, _ sched.Rank) sched.Schedule { return f(n) }}
}

func rooted(name string, f func(n int, root sched.Rank) sched.Schedule) Algorithm {
	return Algorithm{Name: name, Flat: f}
}

func onNodes(name string, f func(nodes hier.Nodes, root sched.Rank) sched.Schedule) Algorithm {
	return Algorithm{Name: name, Nodes: f}
}

// Local schedules of nodes, by how many ranks they have.
func ringScatter(n int) sched.Schedule   { return ring.ReduceScatter{N: n} }
func ringGather(n int) sched.Schedule    { return ring.AllGather{N: n} }
func directScatter(n int) sched.Schedule { return direct.ReduceScatter{N: n} }
func directGather(n int) sched.Schedule  { return direct.AllGather{N: n} }

// is is the goal of a collective without a root.
func is(g sched.Goal) func(sched.Rank) sched.Goal { return func(sched.Rank) sched.Goal { return g } }

// Collectives is the book. A new algorithm is a line here: its name, if new, becomes one of
// Config.Algo, and the choice between several nodes begins to consider it.
var Collectives = []Collective{
	{"allreduce", false, is(sched.AllReduce), []Algorithm{
		flat("ring", func(n int) sched.Schedule { return ring.AllReduce{N: n} }),
		flat("tree", func(n int) sched.Schedule { return tree.AllReduce{N: n} }),
		flat("oneshot", func(n int) sched.Schedule { return direct.OneShot{N: n} }),
		flat("twoshot", func(n int) sched.Schedule { return direct.TwoShot{N: n} }),
		flat("doubling", func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} }),
		flat("halving", func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} }),
		onNodes("hier", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.AllReduce(ringScatter, ring.AllReduce{N: len(nodes)}, ringGather)
		}),
		onNodes("hiertree", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.AllReduce(ringScatter, tree.AllReduce{N: len(nodes)}, ringGather)
		}),
		onNodes("hierlog", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.AllReduce(directScatter, direct.RecursiveDoubling{N: len(nodes)}, directGather)
		}),
	}},
	{"reduce", true, sched.Reduce, []Algorithm{
		rooted("ring", func(n int, root sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: root} }),
		rooted("tree", func(n int, root sched.Rank) sched.Schedule { return tree.Reduce{N: n, Root: root} }),
		rooted("binomial", func(n int, root sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: root} }),
		onNodes("hier", func(nodes hier.Nodes, root sched.Rank) sched.Schedule {
			node, _ := nodes.Seat(root)
			return nodes.Reduce(func(n int, at sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: at} },
				tree.BinomialReduce{N: len(nodes), Root: sched.Rank(node)}, root)
		}),
		onNodes("hiertree", func(nodes hier.Nodes, root sched.Rank) sched.Schedule {
			node, _ := nodes.Seat(root)
			return nodes.Reduce(func(n int, at sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: at} },
				tree.Reduce{N: len(nodes), Root: sched.Rank(node)}, root)
		}),
	}},
	{"broadcast", true, sched.Broadcast, []Algorithm{
		rooted("ring", func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} }),
		rooted("tree", func(n int, root sched.Rank) sched.Schedule { return tree.Broadcast{N: n, Root: root} }),
		rooted("binomial", func(n int, root sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root} }),
		onNodes("hier", func(nodes hier.Nodes, root sched.Rank) sched.Schedule {
			node, _ := nodes.Seat(root)
			return nodes.Broadcast(tree.BinomialBroadcast{N: len(nodes), Root: sched.Rank(node)},
				func(n int, at sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: at} }, root)
		}),
		onNodes("hiertree", func(nodes hier.Nodes, root sched.Rank) sched.Schedule {
			node, _ := nodes.Seat(root)
			return nodes.Broadcast(tree.Broadcast{N: len(nodes), Root: sched.Rank(node)},
				func(n int, at sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: at} }, root)
		}),
	}},
	{"allgather", false, is(sched.AllGather), []Algorithm{
		flat("ring", func(n int) sched.Schedule { return ring.AllGather{N: n} }),
		flat("direct", func(n int) sched.Schedule { return direct.AllGather{N: n} }),
		flat("logstep", func(n int) sched.Schedule { return direct.LogAllGather{N: n} }),
		onNodes("hier", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.AllGather(ring.AllGather{N: len(nodes)}, ringGather)
		}),
		onNodes("hierlog", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.AllGather(direct.LogAllGather{N: len(nodes)}, directGather)
		}),
	}},
	{"reducescatter", false, is(sched.ReduceScatter), []Algorithm{
		flat("ring", func(n int) sched.Schedule { return ring.ReduceScatter{N: n} }),
		flat("direct", func(n int) sched.Schedule { return direct.ReduceScatter{N: n} }),
		flat("logstep", func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} }),
		onNodes("hier", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.ReduceScatter(ringScatter, ring.ReduceScatter{N: len(nodes)})
		}),
		onNodes("hierlog", func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return nodes.ReduceScatter(directScatter, direct.LogReduceScatter{N: len(nodes)})
		}),
	}},
	{"alltoall", false, is(sched.AlltoAll), []Algorithm{
		flat("direct", func(n int) sched.Schedule { return direct.AlltoAll{N: n} }),
		{Name: "hier", Even: true, Nodes: func(nodes hier.Nodes, _ sched.Rank) sched.Schedule {
			return hier.AlltoAll(direct.AlltoAll{N: len(nodes)}, direct.AlltoAll{N: nodes[0]})
		}},
	}},
	{"gather", true, sched.Gather, []Algorithm{
		rooted("direct", func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} }),
	}},
	{"scatter", true, sched.Scatter, []Algorithm{
		rooted("direct", func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} }),
	}},
}

// Find is the collective of a name.
func Find(name string) (Collective, error) {
	i := slices.IndexFunc(Collectives, func(c Collective) bool { return c.Name == name })
	if i < 0 {
		return Collective{}, fmt.Errorf("no collective %q", name)
	}
	return Collectives[i], nil
}

// Find is the algorithm of a name.
func (c Collective) Find(name string) (Algorithm, error) {
	i := slices.IndexFunc(c.Algorithms, func(a Algorithm) bool { return a.Name == name })
	if i < 0 {
		return Algorithm{}, fmt.Errorf("%s has no algorithm %q", c.Name, name)
	}
	return c.Algorithms[i], nil
}

// Schedule makes the table for n ranks, in nodes of local of which the last may be shorter.
func (a Algorithm) Schedule(n, local int, root sched.Rank) (sched.Schedule, error) {
	if a.Nodes == nil {
		return a.Flat(n, root), nil
	}
	if local < 1 || local >= n {
		return nil, fmt.Errorf("%s needs nodes: %d ranks do not make two or more nodes of %d", a.Name, n, local)
	}
	nodes := hier.Even(n/local, local)
	if n%local > 0 {
		if a.Even {
			return nil, fmt.Errorf("%s needs nodes of equally many ranks: %d ranks do not make nodes of %d", a.Name, n, local)
		}
		nodes = append(nodes, n%local)
	}
	return a.Nodes(nodes, root), nil
}
