package cudac

import "github.com/ringo-go/ringo/internal/cuda"

func (a *Args) graph(n int) cuda.Graph { return cuda.Graph(a[n]) }

// nodeConditional is CU_GRAPH_NODE_TYPE_CONDITIONAL.
const nodeConditional = 13

var graphs = map[string]function{
	"cuGraphCreate": func(l *Library, a *Args) error {
		if a.u(1) != 0 {
			return cuda.ErrInvalidValue
		}
		g, err := l.d.GraphCreate()
		return put(a[0], g, err)
	},
	"cuGraphDestroy": func(l *Library, a *Args) error { return l.d.GraphDestroy(a.graph(0)) },
	"cuGraphClone":   func(l *Library, a *Args) error { return give(l.d.GraphClone(a.graph(1))).to(a[0]) },
	"cuGraphGetNodes": func(l *Library, a *Args) error {
		nodes, err := l.d.GraphGetNodes(a.graph(0))
		if err != nil {
			return err
		}
		if a[1] != 0 {
			nodes = nodes[:copy(list[cuda.GraphNode](a[1], *word(a[2])), nodes)]
		}
		return put(a[2], len(nodes), nil)
	},
	"cuGraphAddChildGraphNode": func(l *Library, a *Args) error {
		return give(l.d.GraphAddChildGraphNode(a.graph(1), list[cuda.GraphNode](a[2], a[3]), a.graph(4))).to(a[0])
	},
	"cuGraphConditionalHandleCreate": func(l *Library, a *Args) error {
		return give(l.d.GraphConditionalHandleCreate(a.graph(1), cuda.Context(a[2]), a.u(3), a.u(4))).to(a[0])
	},
	"cuGraphAddNode_v2": func(l *Library, a *Args) error {
		p := at[nodeParams](a[5])
		if p.kind != nodeConditional {
			return cuda.ErrNotSupported
		}
		n, body, err := l.d.GraphAddConditionalNode(a.graph(1), list[cuda.GraphNode](a[2], a[4]), p.condition, p.how, p.ctx)
		if err == nil {
			p.bodies = l.bodyOf(body)
		}
		return put(a[0], n, err)
	},
	"cuGraphAddEventRecordNode": func(l *Library, a *Args) error {
		return give(l.d.GraphAddEventRecordNode(a.graph(1), list[cuda.GraphNode](a[2], a[3]), cuda.Event(a[4]))).to(a[0])
	},
	"cuGraphAddDependencies": func(l *Library, a *Args) error {
		return l.d.GraphAddDependencies(a.graph(0), list[cuda.GraphNode](a[1], a[3]), list[cuda.GraphNode](a[2], a[3]))
	},
	"cuGraphRemoveDependencies": func(l *Library, a *Args) error {
		return l.d.GraphRemoveDependencies(a.graph(0), list[cuda.GraphNode](a[1], a[3]), list[cuda.GraphNode](a[2], a[3]))
	},
	"cuGraphInstantiateWithFlags": func(l *Library, a *Args) error {
		return give(l.d.GraphInstantiate(a.graph(1), uint64(a[2]))).to(a[0])
	},
	"cuGraphExecUpdate_v2": func(l *Library, a *Args) error {
		u, err := l.d.GraphExecUpdate(cuda.GraphExec(a[0]), a.graph(1))
		_ = put(a[2], updateInfo{uint32(u.Result), u.Node, u.FromNode}, nil) // even if the update failed
		return err
	},
	"cuGraphUpload":      func(l *Library, a *Args) error { return l.d.GraphUpload(cuda.GraphExec(a[0]), a.stream(1)) },
	"cuGraphLaunch":      func(l *Library, a *Args) error { return l.d.GraphLaunch(cuda.GraphExec(a[0]), a.stream(1)) },
	"cuGraphExecDestroy": func(l *Library, a *Args) error { return l.d.GraphExecDestroy(cuda.GraphExec(a[0])) },
	"cuUserObjectCreate": func(l *Library, a *Args) error {
		if a.u(4) != 1 { // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which has to be
			return cuda.ErrInvalidValue
		}
		o, err := l.d.UserObjectCreate(l.callback(a[2], a[1]), a.i(3))
		return put(a[0], o, err)
	},
	"cuUserObjectRetain":  func(l *Library, a *Args) error { return l.d.UserObjectRetain(cuda.UserObject(a[0]), a.i(1)) },
	"cuUserObjectRelease": func(l *Library, a *Args) error { return l.d.UserObjectRelease(cuda.UserObject(a[0]), a.i(1)) },
	"cuGraphRetainUserObject": func(l *Library, a *Args) error {
		return l.d.GraphRetainUserObject(a.graph(0), cuda.UserObject(a[1]), a.i(2), a[3]&1 != 0)
	},
}
