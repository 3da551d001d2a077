package cudaemu_test

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// graphed is what f queues on a.s, as a graph; 0 if it could not be captured.
func (a *inquiry) graphed(f func()) cuda.Graph {
	a.says(a.StreamBeginCapture(a.s, cuda.CaptureRelaxed))
	f()
	g, err := a.StreamEndCapture(a.s)
	a.says(err)
	return g
}

// updated asks whether a graph that first queued can become what next queues.
func updated(name string, first, next func(*inquiry)) question {
	return question{"graph update, " + name, func(a *inquiry) {
		g := a.graphed(func() { first(a) })
		x, err := a.GraphInstantiate(g, 0)
		a.says(err)
		h := a.graphed(func() { next(a) })
		u, err := a.GraphExecUpdate(x, h)
		a.says(err)
		a.is(u.Result)
		a.is(u.Node != 0)
		a.is(u.FromNode != 0)
		a.says(a.GraphLaunch(x, a.other))
		a.says(a.StreamSynchronize(a.other))
		a.GraphExecDestroy(x)
		a.GraphDestroy(g)
		a.GraphDestroy(h)
	}}
}

// within asks what becomes of work in the body of a conditional node that does not run.
func within(name string, f func(*inquiry, cuda.Graph) error) question {
	return question{"body of a conditional node, " + name, func(a *inquiry) {
		g, err := a.GraphCreate()
		a.says(err)
		v, err := a.GraphConditionalHandleCreate(g, a.ctx, 0, cuda.ConditionAssignDefault)
		a.says(err)
		_, body, err := a.GraphAddConditionalNode(g, nil, v, cuda.ConditionIf, a.ctx)
		a.says(err)
		a.says(a.StreamBeginCaptureToGraph(a.s, body, nil, cuda.CaptureRelaxed))
		a.says(a.MemsetD8Async(a.p, 1, 4, a.s))
		a.says(f(a, body))
		a.says(must.Err(a.StreamEndCapture(a.s)))
		x, err := a.GraphInstantiate(g, 0)
		if a.says(err) {
			a.says(a.GraphLaunch(x, a.other))
			a.says(a.StreamSynchronize(a.other))
			a.GraphExecDestroy(x)
		}
		a.says(a.GraphDestroy(g))
	}}
}

// A set, a copy on the device, a copy to the host, and an edge through another stream.
func set(a *inquiry)         { a.says(a.MemsetD32Async(a.p, 1, 4, a.s)) }
func setBig(a *inquiry)      { a.says(a.MemsetD32Async(a.p+4096, 2, 4096, a.s)) }
func move(a *inquiry)        { a.says(a.MemcpyAsync(a.p, a.p+4096, 64, a.s)) }
func toHost(a *inquiry)      { a.says(a.MemcpyAsync(a.h, a.p, 64, a.s)) }
func recordEvent(a *inquiry) { a.says(a.EventRecordWithFlags(a.ev, a.s, cuda.EventRecordExternal)) }
func all(list ...func(*inquiry)) func(*inquiry) {
	return func(a *inquiry) {
		for _, f := range list {
			f(a)
		}
	}
}

// forked queues set on both streams, or both on one with the same number of nodes.
func forked(a *inquiry) {
	a.says(a.EventRecord(a.ev, a.s))
	a.says(a.StreamWaitEvent(a.other, a.ev, 0))
	a.says(a.MemsetD32Async(a.p+8192, 1, 4, a.other))
	set(a)
	a.says(a.EventRecord(a.ev, a.other))
	a.says(a.StreamWaitEvent(a.s, a.ev, 0))
	move(a)
}

// leaf queues set, and an event's record that moves behind the last node, as gpucomm does.
func leaf(n int) func(*inquiry) {
	return func(a *inquiry) {
		var node cuda.GraphNode
		var last []cuda.GraphNode
		for range n {
			set(a)
			i, err := a.StreamGetCaptureInfo(a.s)
			a.says(err)
			if node == 0 {
				node, err = a.GraphAddEventRecordNode(i.Graph, i.Dependencies, a.ev)
				a.says(err)
			} else {
				a.says(a.GraphRemoveDependencies(i.Graph, last, []cuda.GraphNode{node}))
				a.says(a.GraphAddDependencies(i.Graph, i.Dependencies, []cuda.GraphNode{node}))
			}
			last = i.Dependencies
		}
	}
}

var graphQuestions = []question{
	updated("same", all(set, move), all(set, move)),
	updated("another address and size", set, setBig),
	updated("more nodes", set, all(set, set)),
	updated("another type", all(set, move), all(move, set)),
	updated("other edges", forked, all(set, set, move)),
	updated("a copy to the host", move, toHost),
	updated("an event's record", all(set, recordEvent), all(set, recordEvent)),
	updated("a record that moves", leaf(3), leaf(3)),
	updated("nothing", func(*inquiry) {}, func(*inquiry) {}),
	within("set", func(a *inquiry, _ cuda.Graph) error { return a.MemsetD8Async(a.p, 1, 4, a.s) }),
	within("record", func(a *inquiry, _ cuda.Graph) error {
		return a.EventRecordWithFlags(a.ev, a.s, cuda.EventRecordExternal)
	}),
	within("wait", func(a *inquiry, _ cuda.Graph) error { return a.StreamWaitEvent(a.s, a.ev, cuda.EventWaitExternal) }),
	within("record node", func(a *inquiry, body cuda.Graph) error {
		return must.Err(a.GraphAddEventRecordNode(body, nil, a.ev))
	}),
	within("host function", func(a *inquiry, _ cuda.Graph) error { return a.LaunchHostFunc(a.s, func() {}) }),
	within("user object", func(a *inquiry, body cuda.Graph) error {
		o, err := a.UserObjectCreate(func() {}, 1)
		a.says(err)
		err = a.GraphRetainUserObject(body, o, 1, true)
		if err != nil {
			a.UserObjectRelease(o, 1)
		}
		return err
	}),
	{"a graph launched into a capture", func(a *inquiry) {
		g := a.graphed(func() { set(a); move(a) })
		x, err := a.GraphInstantiate(g, 0)
		a.says(err)
		h := a.graphed(func() { a.says(a.GraphLaunch(x, a.s)) })
		nodes, err := a.GraphGetNodes(h)
		a.says(err)
		a.is(len(nodes))
		c, err := a.GraphClone(h)
		a.says(err)
		a.says(must.Err(a.GraphAddChildGraphNode(h, nodes, h)))
		a.says(must.Err(a.GraphAddChildGraphNode(h, nodes, c)))
		for _, g := range []cuda.Graph{g, h, c} {
			a.says(a.GraphDestroy(g))
		}
		a.says(a.GraphExecDestroy(x))
	}},
	{"edges of a graph", func(a *inquiry) {
		g := a.graphed(func() { set(a); set(a); set(a) })
		n, err := a.GraphGetNodes(g)
		a.says(err)
		a.says(a.GraphAddDependencies(g, n[:1], n[2:]))
		a.says(a.GraphAddDependencies(g, n[:1], n[2:])) // again
		a.says(a.GraphAddDependencies(g, n[2:], n[:1])) // a circle
		a.says(must.Err(a.GraphInstantiate(g, 0)))
		a.says(a.GraphRemoveDependencies(g, n[2:], n[1:2]))
		a.says(a.GraphDestroy(g))
	}},
}
