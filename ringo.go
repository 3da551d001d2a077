// Package ringo is a library of collective communication: all-reduce and its
// family between goroutines, processes and hosts, on host memory and on GPUs.
//
// A communicator (Comm) is a fixed set of ranks, numbered from 0. All ranks make
// the same calls in the same order; each call gives every rank its result:
//
//	c, err := ringo.OpenEnv(ctx, ringo.Config{}) // started by: ringo run -np 4 -- PROGRAM
//	if err != nil { … }
//	defer c.Close()
//	grad := make([]float32, 1<<20)
//	err = ringo.AllReduce(c, grad, ringo.Avg)
//
// Results are the same bits on all ranks, and the same from run to run for the
// same number of ranks, size and algorithm. Errors are
// *Error values that name rank, peer, transport and remedy; every wait has a
// deadline (Config.Timeout) and Abort ends all of them.
//
// Counts, and shapes of slices in the functions' comments, are in elements,
// not bytes: [k] is a slice of k elements, [n·k] one of k for each of the n
// ranks. A slice must be as long as its shape says, since of a longer one
// some elements would be left out; where counts say how much is used, it may
// be longer. A slice that only the root uses may be nil on the other ranks.
//
// This package is the face of the house. What is asked for is in package call, what
// carries it out is chosen in package choice, how ranks reach each other is in package
// paths, the life of a communicator in package life; hostcomm and gpucomm are its two
// halves. ARCHITECTURE.md follows one call through them. The algorithms are in
// packages ring, tree and direct, as tables that can be read, printed, proved and
// simulated.
package ringo

import (
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/gpucomm"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/trace/history"
	"github.com/ringo-go/ringo/transport"
)

// Version is the version of this library. All ranks must run the same one.
const Version = "0.2.0"

// An ID says where the ranks of a communicator meet. It is secret, and travels as text: String, UnmarshalText.
//
// Fields and methods: go doc ringo/bootstrap.ID
type ID = bootstrap.ID

// The types of a call.
type (
	// A Call describes one operation of one rank.
	//
	// Fields and methods: go doc ringo/core/call.Call
	Call = call.Call

	// A Norm is what follows the sum of an AllReduce or a ReduceScatter, for serving: bias, residual, RMSNorm and rows in
	// 8 bits. See Call.Norm.
	//
	// Fields and methods: go doc ringo/core/call.Norm
	Norm = call.Norm

	// A Kind is what an operation does.
	//
	// Fields and methods: go doc ringo/core/call.Kind
	Kind = call.Kind

	// Region is a span of host or device memory.
	//
	// Fields and methods: go doc ringo/mem.Region
	Region = mem.Region

	// DataType is the type of the elements of an operation.
	//
	// Fields and methods: go doc ringo/kernels.DataType
	DataType = kernels.DataType

	// RedOp is a reduction operator.
	//
	// Fields and methods: go doc ringo/kernels.RedOp
	RedOp = kernels.RedOp

	// A Window is memory of all ranks' GPUs that collectives use where it is; see
	// Comm.Register.
	//
	// Fields and methods: go doc ringo/core/gpucomm.Window
	Window = gpucomm.Window

	// A HistoryRecord is what one rank knows of its communicator; see Comm.History.
	//
	// Fields and methods: go doc ringo/trace/history.Record
	HistoryRecord = history.Record

	// An Arrival is a number of signals to wait for; see Window.Wait.
	//
	// Fields and methods: go doc ringo/core/gpucomm.Arrival
	Arrival = gpucomm.Arrival

	// Sockets are what a program listens on and dials with itself; transport.Sockets has the terms.
	//
	// Fields and methods: go doc ringo/transport.Sockets
	Sockets = transport.Sockets

	// A Footprint is the GPU memory of a communicator, part of which it can do without for a time;
	// see Comm.Footprint.
	//
	// Fields and methods: go doc ringo/core/gpucomm.Footprint
	Footprint = gpucomm.Footprint
)

// The operations; see Kind for what each takes and gives.
const (
	KindBarrier       = call.Barrier
	KindAllReduce     = call.AllReduce
	KindReduce        = call.Reduce
	KindBroadcast     = call.Broadcast
	KindAllGather     = call.AllGather
	KindReduceScatter = call.ReduceScatter
	KindAlltoAll      = call.AlltoAll
	KindGather        = call.Gather
	KindScatter       = call.Scatter
	KindSend          = call.Send
	KindRecv          = call.Recv
	KindAllGatherv    = call.AllGatherv
	KindAlltoAllv     = call.AlltoAllv

	KindGatherv        = call.Gatherv
	KindScatterv       = call.Scatterv
	KindReduceScatterv = call.ReduceScatterv
	KindScan           = call.Scan
)

// The halves of floats, which Go lacks, as bit patterns: a slice of one of them is what functions on slices take for
// Float16 and BFloat16. Floats of 8 bits are in package kernels.
type (
	// F16 is IEEE 754 binary16.
	//
	// Fields and methods: go doc ringo/kernels.F16
	F16 = kernels.F16

	// BF16 is bfloat16.
	//
	// Fields and methods: go doc ringo/kernels.BF16
	BF16 = kernels.BF16
)

// NewF16 rounds to nearest even.
func NewF16(f float32) F16 { return kernels.NewF16(f) }

// NewBF16 rounds to nearest even.
func NewBF16(f float32) BF16 { return kernels.NewBF16(f) }

// The element types.
const (
	Int8       = kernels.Int8
	Uint8      = kernels.Uint8
	Int32      = kernels.Int32
	Uint32     = kernels.Uint32
	Int64      = kernels.Int64
	Uint64     = kernels.Uint64
	Float16    = kernels.Float16
	Float32    = kernels.Float32
	Float64    = kernels.Float64
	BFloat16   = kernels.BFloat16
	Float8E4M3 = kernels.Float8E4M3
	Float8E5M2 = kernels.Float8E5M2
)

// The operators; see package kernels for their arithmetic. PreMulSum and UserOp
// make others.
var (
	Sum    = kernels.Sum
	Prod   = kernels.Prod
	Max    = kernels.Max
	Min    = kernels.Min
	Avg    = kernels.Avg
	BitAnd = kernels.BitAnd
	BitOr  = kernels.BitOr
	BitXor = kernels.BitXor
)

// PreMulSum is the sum of contributions that are multiplied by scale first.
// The ranks may have different scales.
func PreMulSum(scale float64) RedOp { return kernels.PreMulSum(scale) }

// PreMulSumAt is PreMulSum with a scalar in memory: one element of the call's type,
// aligned, of the host or of the rank's GPU. On a GPU the operation reads it when it
// runs, so a graph that is launched again reads it again; in host memory it is read
// when the operation is carried out, or captured. It must not change before the
// operation has ended.
func PreMulSumAt(scale Region) RedOp { return kernels.PreMulSumAt(scale) }

// UserOp is an operator of the caller's own: f must set dst = dst ⊕ src element
// by element, and ⊕ must be commutative and associative as far as the caller
// wants the same bits on every rank. f runs on the goroutine of the operation; ranks of one
// process run theirs at the same time. Of the methods of its own Comm f may call Abort, Err, Failure and
// History: one that would wait for the operation, Close too, is an ErrInvalid at once.
func UserOp(name string, f func(t DataType, dst, src []byte)) RedOp { return kernels.UserOp(name, f) }

// UserOpOf is UserOp for elements of unit bytes that are passed as another type, such as
// structs of 24 bytes as Uint8: f gets whole ones. unit is a multiple of the type's size, at
// most 4096.
func UserOpOf(name string, unit int, f func(t DataType, dst, src []byte)) RedOp {
	return kernels.UserOpOf(name, unit, f)
}

// What callers may want to tell apart with errors.Is. Every error of an
// operation is an *Error and wraps one of these or a cause of the system.
var (
	ErrInvalid     = call.ErrInvalid       // nothing was sent; the communicator stays usable
	ErrUnsupported = call.ErrUnsupported   // likewise
	ErrMismatch    = call.ErrMismatch      // the ranks called different things, or are set up differently
	ErrPeer        = call.ErrPeer          // another rank died, aborted or failed
	ErrLeft        = call.ErrLeft          // another rank has closed the communicator
	ErrAborted     = call.ErrAborted       // Abort was called
	ErrTimeout     = call.ErrTimeout       // Config.Timeout passed
	ErrClosed      = call.ErrClosed        // Close was called
	ErrExcluded    = bootstrap.ErrExcluded // of Shrink: the others have gone on without this rank
)

// An Error is what went wrong with an operation, where and with whom.
//
// Fields and methods: go doc ringo/core/call.Error
type Error = call.Error

// How the algorithm of a collective is chosen; see package choice.
type (
	// A Plan says which algorithm carries out a collective on GPU memory.
	//
	// Fields and methods: go doc ringo/core/choice.Plan
	Plan = choice.Plan

	// A PlanRow is one line of a Plan.
	//
	// Fields and methods: go doc ringo/core/choice.PlanRow
	PlanRow = choice.PlanRow

	// A PlanError is what is wrong with a plan.
	//
	// Fields and methods: go doc ringo/core/choice.PlanError
	PlanError = choice.PlanError

	// A Choice is how a communicator carries out a collective, and why.
	//
	// Fields and methods: go doc ringo/core/choice.Choice
	Choice = choice.Choice

	// GPUs are what ExplainDevice is asked about.
	//
	// Fields and methods: go doc ringo/core/choice.GPUs
	GPUs = choice.GPUs

	// A Definition is an algorithm of a program's own; see Define.
	//
	// Fields and methods: go doc ringo/core/choice.Definition
	Definition = choice.Definition
)

// Define adds an algorithm of the program's own, a sched.Schedule for one of the collectives,
// after it has been proved for 1 to 8 ranks. Then Config.Algo may name it, on the host and
// on GPUs, and Explain, "ringo sim" and "ringo bench" know it in this program; see
// examples/schedule. It is proved once more for the ranks that it is used with, before any of
// them hears of the call. All ranks must define the same ones in the same order, before Open.
func Define(d Definition) error { return choice.Define(d) }

// ParsePlan reads the text of a plan. The error is a *PlanError.
func ParsePlan(name, text string) (*Plan, error) { return choice.ParsePlan(name, text) }

// Algorithms are the words of Config.Algo.
func Algorithms() []string { return call.Algorithms() }
