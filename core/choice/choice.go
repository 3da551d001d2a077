// Package choice answers one question for host and GPU memory: what carries this
// call out, and why? It is part of a communicator, and nothing here is promised to other modules
// but what package ringo has as its own.
//
// A Chooser is made once, when a communicator is opened, of what all its ranks know;
// Choose is then a pure function of the Question, so all ranks choose the same
// without another word, and allocates nothing. The calls themselves, Explain and
// "ringo tune" ask the same function.
//
//	book.go        the book of algorithms (package ring/book) by kind and number
//	define.go      algorithms of a program's own
//	choice.go      the choice; norm.go that of calls with a Norm
//	carrier.go     what carries a call out on GPUs, as far as all ranks know it, and as one rank does
//	blocks.go      how many blocks of a GPU a call takes; agree.go the budget that the ranks agree on
//	kernels.go     which kernels there are
//	topology.go    how ranks lie on hosts
//	thresholds.go  the algorithm by size on one host, measured
//	across.go      the algorithm across hosts: the one of least cost; cost.go the cost of one
//	rows.go        the algorithm by size on GPUs: rows of plans and of the model
//	planfile.go    the text of a plan; builtin.go the plans that come with the program
//	model.go       rows for GPUs and paths that nobody has measured, by package sim
//	explain.go     the choice in words; alternatives.go other algorithms and their times
//
// Across hosts a communicator takes the algorithm with the least time in the simulator, which knows how many ranks each
// host has and the agreed network. Algorithms that connect a rank with at most 64 ranks of other hosts are preferred up
// to 1.25 times the least time.
//
// The trap: whatever a choice depends on must be the same on all ranks. A value that
// only this rank knows, such as the address of a buffer, may not enter a Question;
// whether memory is registered may, for ranks that differ in it find out by the sign.
package choice

import (
	"cmp"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
)

// A Question is what a choice depends on.
type Question struct {
	Kind       call.Kind
	Bytes      int // of Count elements
	Type       kernels.DataType
	Op         kernels.Kind // of a reduction
	OnGPU      bool
	Registered bool // the memory that the collective reaches lies in windows
	NoCopies   bool // copy engines must not move that memory, see p2p.Stalls

	Row int // bytes of a row, of a call with a Norm; 0: it has none

	// Root and InPlace are for the proof of an algorithm that a program has defined. The choice
	// does not depend on them.
	Root    int
	InPlace bool
}

// QuestionOf is the question of a call on host memory.
func QuestionOf(c *call.Call) Question {
	q := Question{Kind: c.Kind, Bytes: c.Bytes(), Type: c.Type, Op: c.Op.Kind, Root: c.Root, InPlace: c.In.Overlaps(c.Out)}
	if c.Norm != nil {
		q.Row = c.Norm.Row * c.Type.Size()
	}
	return q
}

// memory is what reaches the memory of a question.
func (q *Question) memory() memory {
	switch {
	case !q.Registered:
		return anywhere
	case q.NoCopies:
		return forKernels
	}
	return forCopies
}

// A memory says what reaches the memory that a collective works on.
type memory uint8

const (
	anywhere   memory = iota // it is not in windows
	forKernels               // kernels of all ranks reach it
	forCopies                // copy engines too
)

// An Answer is what carries a call out, and why: all that the ranks know of it together.
type Answer struct {
	Algo   call.Algo // as all ranks name it in their signs
	By     Carrier
	Kernel collective.Direct // of ByKernel, ByWindow, ByCopies and ByNorm

	// Of schedules on GPUs:
	Bulk    bool  // they go by bulk copies where a GPU has them, see Way
	Lingers bool  // lingering kernels may carry the call out
	Phases  uint8 // programs that carry it out one after the other, 0 if one does it all

	narrowed bool // a row was left out, see Budget.takes
	row      *Row // of Algo, nil if it is from none

	Why string
	Err error // why the call cannot be carried out: Algo is a program's own, and not proved for it

	Blocks    int // of a GPU that each kernel takes, at most; 0 on a host, and for messages
	WhyBlocks string
}

// reason is Why, and what was left out.
func (ans *Answer) reason() string {
	if ans.narrowed {
		return ans.Why + "; " + leftOut
	}
	return ans.Why
}

// A Chooser chooses for one communicator. Where Kernels is nil, schedules carry out all.
type Chooser struct {
	Topo    Topology
	Forced  call.Algo // chosen where it has the collective
	InOrder bool      // reductions are combined in order of rank
	Rows    Rows      // of GPUs
	Kernels Kernels   // of GPUs
	Budget  Budget    // of blocks of GPUs

	// Tests set these; 0 is the default. ByShares is for more than SharesFrom/(ranks − 1) bytes, and a pair of its
	// kernels reduces SharesPiece bytes.
	SharesFrom, SharesPiece int
	PhasesFrom              int // bytes of the larger buffer from which GPUs of several hosts work in phases
}

const (
	asked   = "asked for by RINGO_ALGO or Config.Algo"
	inOrder = "Deterministic: contributions are moved as they are and combined in order of rank"
	ordered = "Deterministic: a kernel that combines in order of rank"
	byZero  = "policy zero: copy engines take no multiprocessor"
	leftOut = "beside kernels that compute it ends before a direct kernel, as measured"
	oneRank = "the only rank: a copy, or nothing in place"
)

// Choose answers a question. It allocates nothing, but for a program's own algorithms, and for a size that is new
// across hosts, which takes some ms.
func (c *Chooser) Choose(q Question) (ans Answer) {
	orderly := c.InOrder && OrderMatters(q.Kind, q.Type, q.Op, c.Topo.Ranks)
	switch {
	case q.Row > 0 && !q.OnGPU:
		ans = Answer{Algo: call.ByRank, By: ByFold, Why: rowsInOrder}
	case q.OnGPU:
		if q.Row > 0 {
			ans = c.norm(q)
		} else {
			ans = c.onGPU(q, orderly)
		}
		if c.alone(&q) {
			ans.By, ans.Why = Alone, oneRank
			break
		}
		c.steps(&q, &ans)
		ans.Blocks, ans.WhyBlocks = c.blocks(&q, &ans)
	case orderly:
		ans = Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}
	default:
		ans.Algo, ans.Why = Threshold(q.Kind, c.Topo, q.Bytes, c.Forced)
	}
	if ans.Algo.IsDefined() {
		ans.Err = c.prove(&q, ans.Algo)
	}
	return ans
}

// Latest is the last question of a communicator and its answer: calls are mostly like the one before.
type Latest struct {
	question Question
	forced   call.Algo // Chooser.Forced at that time: tests change it
	answer   Answer
}

// Choose is Chooser.Choose, remembered. The answer is good until the next question.
func (l *Latest) Choose(c *Chooser, q Question) *Answer {
	if q != l.question || c.Forced != l.forced {
		*l = Latest{q, c.Forced, c.Choose(q)}
	}
	return &l.answer
}

// onGPU chooses for GPU memory. Direct and window kernels combine in order of rank, schedules do not. Window kernels
// read contributions as they are, so none serves a PreMulSum, where each rank scales its own.
func (c *Chooser) onGPU(q Question, orderly bool) Answer {
	scales := q.Kind.Reduces() && q.Op == kernels.KindPreMulSum
	where := q.memory()
	if scales {
		where = anywhere
	}
	best := c.best(q.Kind, q.Bytes, where)
	if !orderly || best.By == ByWindow {
		return best
	}
	shot := call.Direct
	if q.Kind == call.AllReduce {
		shot = call.TwoShot
	}
	kernel, isKernel := c.kernel(q.Kind, shot, q.Bytes)
	switch {
	case c.Forced == call.Steps:
	case best.By != ByKernel && c.serves(q.Kind, call.Window, q.Bytes, where):
		k, _ := WindowKernel(q.Kind)
		return Answer{Algo: call.Window, By: ByWindow, Kernel: k, Why: ordered}
	case c.inShares(q.Kind, q.Bytes):
		return Answer{Algo: call.TwoShot, By: ByShares, Why: ordered}
	case best.By == ByKernel:
		return best
	case isKernel:
		return Answer{Algo: shot, By: ByKernel, Kernel: kernel, Why: ordered}
	}
	return Answer{Algo: call.ByRank, By: ByFold, Why: inOrder}
}

// best is the choice where order does not matter: the algorithm that is asked for, else by policy zero copy engines,
// else the first row that covers the size, else what a host would choose.
func (c *Chooser) best(kind call.Kind, bytes int, where memory) Answer {
	if c.Forced != call.Auto && c.serves(kind, c.Forced, bytes, where) {
		return c.answer(kind, c.Forced, bytes, asked)
	}
	if c.Budget.Policy == PolicyZero && !kind.Reduces() && c.serves(kind, call.Copies, bytes, where) {
		return c.answer(kind, call.Copies, bytes, byZero)
	}
	r, narrowed := c.row(kind, bytes, where)
	var ans Answer
	if r != nil {
		ans = c.answer(kind, r.Algo, bytes, r.From)
	} else {
		a, why := Threshold(kind, c.Topo, bytes, c.Forced)
		ans = c.answer(kind, a, bytes, why)
	}
	ans.row, ans.narrowed = r, narrowed
	return ans
}

// answer says what an algorithm of a collective stands for on these GPUs.
func (c *Chooser) answer(kind call.Kind, a call.Algo, bytes int, why string) Answer {
	ans := Answer{Algo: a, Why: why}
	if k, ok := c.kernel(kind, a, bytes); ok {
		ans.By, ans.Kernel = ByKernel, k
	}
	switch a {
	case call.Window:
		ans.By = ByWindow
	case call.Copies:
		ans.By = ByCopies
	default:
		return ans
	}
	ans.Kernel, _ = WindowKernel(kind) // which serves has found
	return ans
}

// OrderMatters reports whether algorithms may give different bits. Integers wrap,
// Max and Min select, and the sum of two floats is the same either way; but some
// algorithms round scaled contributions of narrow floats, and some do not.
func OrderMatters(kind call.Kind, t kernels.DataType, op kernels.Kind, ranks int) bool {
	switch {
	case !kind.Reduces() || ranks == 1:
		return false
	case op == kernels.KindUser:
		return true
	case t < kernels.Float16 || op == kernels.KindMax || op == kernels.KindMin:
		return false
	case ranks > 2:
		return true
	}
	scales := op == kernels.KindAvg || op == kernels.KindPreMulSum
	return scales && t.Size() < kernels.Float32.Size()
}

// inShares reports whether a reduction to one rank, in order of rank, takes two direct
// kernels. The root then receives the data once and not from every rank, which is
// quicker if what it saves takes longer than a second kernel.
func (c *Chooser) inShares(kind call.Kind, bytes int) bool {
	n := c.Topo.Ranks
	return kind == call.Reduce && c.anyDirect() && n > 2 && bytes > cmp.Or(c.SharesFrom, 6<<20)/(n-1)
}

// Parts are the collectives that a reduction in order of rank is made of: first brings the
// contributions; then, unless it is 0, takes the results away. Up to whole bytes an
// all-reduce sends everything to everybody, which takes one hop less.
func Parts(kind call.Kind, bytes, whole int) (first, then call.Kind) {
	switch {
	case kind == call.Reduce:
		return call.Gather, 0
	case kind == call.ReduceScatter:
		return call.AlltoAll, 0
	case bytes <= whole:
		return call.AllGather, 0
	}
	return call.AlltoAll, call.AllGather
}

// An all-reduce in order of rank of at most this many bytes sends everything to everybody.
// The limit is higher on a GPU: one collective in place of two saves a launch.
const (
	WholeOnHost = 16 << 10
	WholeOnGPU  = 64 << 10
)
