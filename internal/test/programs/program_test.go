// Package programs makes random programs of communicators and carries them out; it is for tests. A Program is a value:
// it prints as text, is read back from it, and is made smaller when it fails.
//
// TestPrograms has programs of streams and graphs on emulated or real GPUs, and compares every byte with a model on the
// host; TestScenes has one program for each thing that they are made of. TestKills has programs with Kills, whose ranks
// end at any point: goroutines or processes, on host memory or emulated GPUs. TestMatrix has the ends of a rank one by
// one, in Go and in C.
//
// The trap: steps of a program name communicators, graphs and streams by number, and only some orders of steps make
// sense. Type world knows which; Repair drops the other steps.
package programs

import (
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

// A Program is what all ranks do, step by step. Rank r has device r.
type Program struct {
	Seed  uint64 `p:"seed"` // of the contents of memory
	Ranks int    `p:"ranks"`
	Bytes int    `p:"bytes"` // of each buffer
	Each  bool   `p:"each"`  // a goroutine drives each rank; otherwise one drives all
	Ring  int    `p:"ring"`  // RINGO_WORK_FIFO_BYTES, 0 for the default
	Args  int    `p:"args"`  // RINGO_WORK_ARGS_BYTES, 0 for the default
	Steps []Step `p:"-"`

	// Kills has every step be one of all ranks with memory of its own, so that those that are left can go on when one
	// has ended. There is one communicator, on the transport Transport with slots of Slot bytes.
	Kills     bool   `p:"kills"`
	Apart     bool   `p:"apart"` // ranks are processes
	Host      bool   `p:"host"`  // memory is the host's
	Transport string `p:"transport"`
	Slot      int    `p:"slot"`
}

// Buffers is how many buffers a rank has for each communicator. Only operations of this
// communicator use them, so its order of operations is all that orders their contents.
const Buffers = 4

// A Stream is one of the streams that each rank has.
type Stream int

// The streams: two that do not wait for the legacy stream, one that does, the legacy
// stream, and the one of the thread.
const (
	Own Stream = iota
	Own2
	Blocking
	Legacy
	Thread
	streams
)

// A Step is what the ranks do next. The verbs below tell which fields count. The tags are the
// names in a program's text.
type Step struct {
	Do     string `p:"-"`
	Times  int    `p:"times"` // Call, Message, Group, Launch outside of captures: more than 1 to do it again and again
	Comm   int    `p:"c"`
	Graph  int    `p:"g"`
	Stream Stream `p:"on"`
	To     Stream `p:"to"` // Fork, Join: the other stream

	Parent  int     `p:"of"`      // Split: the communicator that is divided; Update: the graph that is taken
	Members [][]int `p:"members"` // Split: by part, ranks of the parent in the order of the part
	Algo    string  `p:"algo"`    // Open
	Ordered bool    `p:"ordered"` // Open: reductions in order of rank
	Slot    int     `p:"slot"`    // Open: bytes of a slot, 0 for the default
	Path    string  `p:"path"`    // Open: host, through memory of the host; bridge, through its transports

	Ranks   []int  `p:"ranks"`   // Begin: who captures, all if empty
	Mode    string `p:"mode"`    // Begin: global, relaxed, or thread if empty
	Discard bool   `p:"discard"` // End: the graph is not kept
	Rank    int    `p:"rank"`    // Abort, Bad: of the communicator

	Kind   call.Kind        `p:"kind"` // Call
	Type   kernels.DataType `p:"type"`
	Op     kernels.Kind     `p:"op"`
	Count  int              `p:"n"`
	Root   int              `p:"root"`
	Counts [][]int          `p:"counts"` // AllGatherv: one row; AlltoAllv: what rank i sends, in row i
	In     int              `p:"in"`     // number of a buffer
	Out    int              `p:"out"`    // the same as In: in place
	InAt   int              `p:"inat"`   // elements before the data, in place 0
	OutAt  int              `p:"outat"`
	Fill   int              `p:"fill"` // if not 0, In is memory of the stream's own that is written just before
	Sender int              `p:"from"` // Message: rank of the communicator
	Recver int              `p:"for"`

	By    string `p:"by"`    // Call: context, by DoContext; Group: start, its calls by Start and Wait
	How   string `p:"how"`   // Leave: Close, Abort, deadline; of processes: exit, kill. Update: alike, it succeeds
	After int    `p:"after"` // Leave: µs until a process ends, in which it goes on; Stop: how long

	Calls []Step `p:"-"` // Group
}

// The verbs.
const (
	Open       = "open"       // Comm of all ranks, Algo, Ordered
	Split      = "split"      // Comm, Comm+1, … one a part, of Parent by Members
	Call       = "call"       // a collective of Comm on Stream
	Message    = "message"    // Sender sends Count elements to Recver
	Group      = "group"      // Calls and Messages together
	Begin      = "begin"      // Ranks begin to capture Graph on Stream
	Fork       = "fork"       // stream To becomes part of the capture on Stream
	Join       = "join"       // Stream waits for To, which leaves the capture
	End        = "end"        // the capture becomes Graph
	Launch     = "launch"     // Graph on Stream
	Update     = "update"     // Graph becomes what Parent is
	Destroy    = "destroy"    // Graph
	Register   = "register"   // buffer In of Comm becomes a window
	Unregister = "unregister" // it is none any more
	Renew      = "renew"      // Stream is destroyed and made anew
	Sync       = "sync"       // the host waits for Stream
	Check      = "check"      // the host waits for all streams and looks at Comm's buffers
	Bad        = "bad"        // Rank makes a call with wrong arguments, which harms nobody
	Abort      = "abort"      // Rank aborts Comm
	Close      = "close"      // Comm
	Meet       = "meet"       // the goroutines of all ranks wait for each other
)

// The verbs of programs with Kills, which have Call and Group too.
const (
	Leave  = "leave"  // Rank ends, others go on
	Stop   = "stop"   // Rank's process is stopped for a time
	Shrink = "shrink" // to all ranks, unless one has left
	Grow   = "grow"   // one more rank comes in
	Parts  = "parts"  // Count parts of the ranks each do the one of Calls
)

// on is the stream of a step, for a group that of its calls.
func (s *Step) on() Stream {
	if len(s.Calls) > 0 {
		return s.Calls[0].Stream
	}
	return s.Stream
}

// parts are the communicators that a step makes, with their members.
func (s *Step) parts() map[int][]int {
	list := map[int][]int{}
	for i, m := range s.Members {
		list[s.Comm+i] = m
	}
	return list
}
