package grid

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// Options of an Engine. Zero fields take defaults.
type Options struct {
	Rank    sched.Rank
	Ranks   int // of the communicator
	Threads int // that move data in a block, a multiple of 32 up to 512, which is the default
	// MinSlice is the least number of bytes that a lane moves: a small operation has
	// fewer lanes. A multiple of 128.
	MinSlice int
	// Blocks is the most blocks of a kernel that can run with any number: by default
	// the number of the device's multiprocessors; less if ranks share the device. There
	// must be room for all of them at once, whatever else runs: messages rely on it.
	Blocks int
	// DirectBlocks is the most blocks of a direct kernel, from 1 to 128, the default;
	// the same on all ranks. If ranks share a device, the kernels of all of them have
	// to fit on it at once.
	DirectBlocks int
	// FIFOBytes is the length of the ring for tables that do not fit into arguments, by default 1 MiB. A ring that
	// is too short for one collective becomes longer.
	FIFOBytes int
	// ArgsBytes is how long a table in a kernel's arguments may be, by default as long
	// as there is room for. With 1 all tables lie in the ring.
	ArgsBytes int
	// Bulk has schedules carried out by bulk copies, if the device can: of capability 9.0 or
	// newer. See Engine.Bulk. Ranks may differ.
	Bulk bool
	// TileBytes is the length of a bulk copy where slices are combined: a multiple of 32 from 64 bytes to 24 KiB,
	// by default 12 KiB, with which two blocks fit on a multiprocessor. Kernels that only move have 4/3 of it.
	TileBytes int
	// Linger has operations share a kernel of bulk copies. Ranks may differ.
	Linger Linger
	// Guard ends waits for room in the ring. Without it there is no deadline.
	Guard *fifo.Guard
}

// Linger says which operations one kernel carries out one after the other, if they follow each other closely.
type Linger struct {
	Time        time.Duration // that the kernel waits for the next one, below 4 s; 0: each has its own kernel
	Blocks      int           // of the kernel, by default Options.Blocks: operations of more lanes have their own kernel
	Least, Most int           // bytes of an operation
}

const (
	maxThreads      = collective.MaxThreads
	defaultMinSlice = 8 << 10
	someSlices      = 4 // of a piece, if the piece is long enough
	stageBytes      = 64 << 10
	slabBytes       = 128 << 10
	otherThreads    = 64  // of a block: threads that wait for peers, and threads that notify peers
	turnBytes       = 512 // of shared memory, at most, for turns between them
)

// An Engine carries out operations on one device, one after the other: the caller
// orders its streams so that no two operations run at once. Its methods must not be
// called concurrently.
type Engine struct {
	driver     cuda.Driver
	ctx        cuda.Context
	dev        cuda.Device
	capability int
	priority   int // of kernels
	maxShared  int
	links      Links
	rank       sched.Rank
	ranks      int
	threads    int
	blocks     int
	minSlice   int

	control  *Control
	stream   cuda.Stream // for uploads
	store    *cuda.Store // memory and modules, which are not freed while kernels may run
	stage    uintptr     // pinned host memory that uploads pass through
	owned    []uintptr   // device memory
	fixed    int         // bytes of owned
	local    uintptr     // Local of kernels/cuda/comm.h, then counts
	endTable uintptr     // of all ends: of each rank the receiving one, then the sending ones
	signs    uintptr     // addresses of sign boards, in order of rank
	signals  uintptr     // counts of signals, 0 where there are none
	slab     uintptr     // free memory for carve
	slabLeft int
	slabs    *cuda.Growing // after the first one
	tmp      *cuda.Growing // scratch

	ends    map[endKey]end
	needs   map[endKey]*need
	modules map[moduleKey]*module
	latest  latest
	finish  *device.Combiner
	text    textFunc
	mail    mailboxes
	bulk    bulk
	linger  linger
	gates   gates
	frame   frame
	tables  tables
	ways    []way    // of the current messages
	wayOf   []int32  // by way.slot: index into ways, from 1
	order   []uint64 // ways that have messages left; key of way, then index into ways
	at      int      // in order
}

type endKey struct {
	peer  sched.Rank
	sends bool
}

// localBytes is the length of Local of kernels/cuda/comm.h.
const localBytes = 256

// New makes an Engine for a device and its primary context. It allocates the memory
// that outlasts operations and loads no kernel.
func New(d cuda.Driver, ctx cuda.Context, dev cuda.Device, l Links, o Options) (*Engine, error) {
	e := &Engine{
		driver: d, ctx: ctx, dev: dev, links: l, rank: o.Rank, ranks: o.Ranks, threads: o.Threads, minSlice: o.MinSlice,
		blocks: o.Blocks,
		ends:   map[endKey]end{}, needs: map[endKey]*need{}, modules: map[moduleKey]*module{}, text: ptxText,
		tmp: cuda.NewGrowing(d, ctx, dev), slabs: cuda.NewGrowing(d, ctx, dev),
	}
	if e.threads == 0 {
		e.threads = maxThreads
	}
	if e.minSlice == 0 {
		e.minSlice = defaultMinSlice
	}
	if e.mail.blocks = o.DirectBlocks; e.mail.blocks == 0 {
		e.mail.blocks = MaxBlocks
	}
	switch {
	case e.ranks < 1:
		return nil, fmt.Errorf("grid: %d ranks", e.ranks)
	case e.rank < 0 || int(e.rank) >= e.ranks:
		return nil, fmt.Errorf("grid: rank %d of %d", e.rank, e.ranks)
	case e.threads < 32 || e.threads > maxThreads || e.threads%32 != 0:
		return nil, fmt.Errorf("grid: blocks of %d threads: want a multiple of 32 up to %d", e.threads, maxThreads)
	case e.mail.blocks < 1 || e.mail.blocks > MaxBlocks:
		return nil, fmt.Errorf("grid: direct kernels of %d blocks: want 1 to %d", e.mail.blocks, MaxBlocks)
	case o.FIFOBytes < 0 || o.FIFOBytes > maxFIFOBytes:
		return nil, fmt.Errorf("grid: a ring of %d bytes: want 0 to %d", o.FIFOBytes, maxFIFOBytes)
	case o.TileBytes != 0 && (o.TileBytes < leastTile || o.TileBytes > mostTile || o.TileBytes%tileUnit != 0):
		return nil, fmt.Errorf("grid: tiles of %d bytes: want a multiple of %d from %d to %d", o.TileBytes, tileUnit,
			leastTile, mostTile)
	case o.ArgsBytes < 0:
		return nil, fmt.Errorf("grid: tables of %d bytes in arguments", o.ArgsBytes)
	case e.minSlice < 128 || e.minSlice%128 != 0:
		return nil, fmt.Errorf("grid: slices of %d bytes: want a multiple of 128", e.minSlice)
	}
	e.wayOf = make([]int32, 2*e.ranks+1)
	e.store = cuda.OpenStore(d, ctx)
	if err := e.quietly(func() error { return e.open(o) }); err != nil {
		return nil, errors.Join(fmt.Errorf("grid: device %d: %w", dev, err), e.Close())
	}
	return e, nil
}

func (e *Engine) open(o Options) error {
	d := e.driver
	var err error
	if e.capability, err = cuda.Capability(d, e.dev); err != nil {
		return err
	}
	if err := e.prioritize(); err != nil {
		return err
	}
	if e.maxShared, err = d.DeviceGetAttribute(cuda.AttrMaxSharedPerBlock, e.dev); err != nil {
		return err
	}
	e.maxShared -= turnBytes
	if err = e.openBulk(o); err != nil {
		return err
	}
	if e.control, err = newControl(d, e.store, e.ranks); err != nil {
		return err
	}
	if e.stage, err = e.store.HostAlloc(stageBytes); err != nil {
		return err
	}
	if e.stream, err = d.StreamCreate(cuda.StreamNonBlocking, 0); err != nil {
		return err
	}
	if err := e.tables.open(e, o); err != nil {
		return err
	}
	n := localBytes + 2*e.ranks*MaxLanes*8
	if e.local, err = e.alloc(n); err != nil {
		return err
	}
	if err := e.clear(e.local, n); err != nil {
		return err
	}
	if e.endTable, err = e.carve(2 * e.ranks * endBytes); err != nil {
		return err
	}
	if e.blocks == 0 {
		if e.blocks, err = d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, e.dev); err != nil {
			return err
		}
	}
	if err := e.openLinger(o.Linger); err != nil {
		return err
	}
	if err := e.openMail(); err != nil {
		return err
	}
	if err := e.openGates(); err != nil {
		return err
	}
	return e.openSigns()
}

// openSigns writes down the addresses of the sign boards, if there are any.
func (e *Engine) openSigns() (err error) {
	signs := e.links.Signs()
	if signs == nil {
		return nil
	}
	if e.signs, err = e.carve(8 * e.ranks); err != nil {
		return err
	}
	if err := e.write(e.signs, bytesOf(signs)); err != nil {
		return err
	}
	return e.openSignals()
}

// Control is the control block of this rank.
func (e *Engine) Control() *Control { return e.control }

// End tells the device that all is over. Kernels that wait end, and those that start
// later, by a graph for instance, touch nothing that the peers or the caller own, except
// that a short one may load from its own In before it knows. They count in
// Control.Progress. When End has returned the peers' memory may go; the Engine's own
// has to stay while graphs hold its kernels.
func (e *Engine) End() error {
	e.control.Abort()
	m, _, err := e.kernel(nil)
	if err != nil {
		return err
	}
	return e.quietly(func() error {
		l := cuda.Launch{Block: cuda.Dim3{X: 32}, Stream: e.stream}
		if err := e.driver.LaunchKernel(m.over, &l, cuda.ArgsOf(&overArgs{uint64(e.local)})); err != nil {
			return err
		}
		return e.driver.StreamSynchronize(e.stream)
	})
}

// overArgs is struct OverArgs of kernels/cuda/run.cu.
type overArgs struct{ local uint64 }

// Close frees the Engine's memory and modules. Its kernels have to be done, and
// graphs that hold them must not be launched again.
func (e *Engine) Close() error {
	var errs []error
	if e.finish != nil {
		errs = append(errs, e.finish.Close())
		e.finish = nil
	}
	errs = append(errs, e.tmp.Close(), e.slabs.Close(), cuda.Quietly(e.driver, e.ctx, func() error {
		errs := []error{e.closeAside(), e.closeLinger()}
		if e.stream != 0 {
			errs = append(errs, e.driver.StreamDestroy(e.stream))
			e.stream = 0
		}
		return errors.Join(errs...)
	}))
	clear(e.modules)
	e.latest = latest{}
	if e.store == nil {
		return errors.Join(errs...)
	}
	e.tables.close(e.store)
	for _, p := range e.owned {
		e.store.Free(p)
	}
	e.owned = nil
	if e.stage != 0 {
		e.store.FreeHost(e.stage)
		e.stage = 0
	}
	if e.control != nil {
		e.control.free(e.store)
	}
	errs = append(errs, e.store.Close())
	e.store = nil
	return errors.Join(errs...)
}

// prioritize gives kernels the greatest priority where the driver has it for launches: peers wait
// for these kernels, which are short of blocks beside a kernel that computes.
func (e *Engine) prioritize() error {
	version, err := e.driver.DriverGetVersion()
	if err != nil || version < 11080 {
		return err
	}
	return e.quietly(func() error {
		_, e.priority, err = e.driver.CtxGetStreamPriorityRange()
		return err
	})
}

// queue launches a kernel with the grid and the stream of e.frame.launch, and records event after it unless that is 0.
func (e *Engine) queue(f cuda.Function, args []byte, event cuda.Event) error {
	l := &e.frame.launch
	l.Priority = e.priority
	return cuda.LaunchAndRecord(e.driver, f, l, args, event)
}

// quietly calls f with the context current, in a mode in which calls that a capture
// on this thread would forbid are allowed.
func (e *Engine) quietly(f func() error) error { return cuda.Quietly(e.driver, e.ctx, f) }

// carve is a small part of device memory until Close. The first slab is allocated when the Engine is made. Later ones
// are mapped, which waits for no kernel.
func (e *Engine) carve(n int) (p uintptr, err error) {
	n = roundUp(max(1, n), 64)
	switch {
	case n <= e.slabLeft:
	case e.slab == 0:
		if e.slab, err = e.alloc(max(n, slabBytes)); err != nil {
			return 0, err
		}
		e.slabLeft = max(n, slabBytes)
	default:
		used := e.slabs.Size()
		if e.slab, err = e.slabs.AtLeast(used + n); err != nil {
			return 0, err
		}
		e.slab, e.slabLeft = e.slab+uintptr(used), e.slabs.Size()-used
	}
	p = e.slab
	e.slab, e.slabLeft = p+uintptr(n), e.slabLeft-n
	return p, nil
}

// alloc is device memory until Close.
func (e *Engine) alloc(n int) (uintptr, error) {
	p, err := e.store.Alloc(n)
	if err == nil {
		e.owned, e.fixed = append(e.owned, p), e.fixed+n
	}
	return p, err
}

// Fixed is how many bytes of device memory the Engine holds until Close. Mapped is how many more Suspend gives back.
// All kernels have ended before Suspend, and none begins before Resume.
func (e *Engine) Fixed() int     { return e.fixed + e.slabs.Size() }
func (e *Engine) Mapped() int    { return e.tmp.Mapped() }
func (e *Engine) Suspend() error { return e.tmp.Suspend() }
func (e *Engine) Resume() error  { return e.tmp.Resume() }

// write copies to device memory and waits for the copy alone, not for the caller's
// streams.
func (e *Engine) write(to uintptr, b []byte) error {
	stage := pinned(e.stage, stageBytes)
	for len(b) > 0 {
		n := copy(stage, b)
		if err := e.driver.MemcpyAsync(to, e.stage, n, e.stream); err != nil {
			return err
		}
		if err := e.driver.StreamSynchronize(e.stream); err != nil {
			return err
		}
		to, b = to+uintptr(n), b[n:]
	}
	return nil
}

// clear is write of zeros. A kernel of the driver that clears might wait for others.
func (e *Engine) clear(at uintptr, n int) error { return e.write(at, make([]byte, n)) }

// end is this rank's end of the queues to or from a peer. All programs share its counts.
func (e *Engine) end(peer sched.Rank, sends bool) (end, error) {
	key := endKey{peer, sends}
	if x, ok := e.ends[key]; ok {
		return x, nil
	}
	open, dir := e.links.Recv, 0
	if sends {
		open, dir = e.links.Send, 1
	}
	l, err := open(peer)
	if err != nil {
		return end{}, err
	}
	if l.Slots < 2 || l.Slots&(l.Slots-1) != 0 || l.SlotBytes < 128 || l.SlotBytes%128 != 0 || l.Lanes < 1 ||
		l.Lanes > MaxLanes {
		return end{}, fmt.Errorf("grid: %d lanes of %d slots of %d bytes: want 1 to %d, a power of two, a multiple of 128",
			l.Lanes, l.Slots, l.SlotBytes, MaxLanes)
	}
	if l.NoteBytes < 0 || l.NoteBytes > maxNote || l.NoteBytes%lineBytes != 0 {
		return end{}, fmt.Errorf("grid: notes of %d bytes: want a multiple of %d up to %d", l.NoteBytes, lineBytes, maxNote)
	}
	x := end{
		slots: l.Queues, heads: l.Queues + uint64(l.SlotsBytes()), post: l.Post, seen: l.Seen,
		counts:      uint64(e.local) + localBytes + uint64((dir*e.ranks+int(peer))*MaxLanes*8),
		count:       uint32(l.Slots),
		slotBytes:   uint32(l.SlotBytes),
		noteBytes:   uint32(l.NoteBytes),
		peer:        uint32(peer),
		slotsStride: uint32(l.QueueBytes()),
		headsStride: uint32(l.QueueBytes()),
	}
	if l.Heads != 0 {
		x.heads, x.slotsStride, x.headsStride = l.Heads, uint32(l.SlotsBytes()), uint32(l.HeadBytes())
	}
	err = e.quietly(func() error {
		return e.write(e.endTable+uintptr((dir*e.ranks+int(peer))*endBytes), bytesOf([]end{x}))
	})
	if err == nil {
		e.ends[key] = x
		if l.Need != nil {
			e.needs[key] = &need{end: key, more: l.Need}
		}
	}
	return x, err
}

// A need brings memory for an end's queues: for the first lanes, and later for more.
type need struct {
	end   endKey
	lanes int // that have memory
	more  func(lanes int) error
}

// lanesFor makes sure that the queues of a program's first lanes have memory. Captures allow it.
func (p *Program) lanesFor(lanes int) error {
	for _, n := range p.needs {
		if n.lanes >= lanes {
			continue
		}
		if err := n.more(lanes); err != nil {
			return &engine.StepError{Peer: n.end.peer, Phase: "connect",
				Err: fmt.Errorf("grid: memory of %d lanes of queues with rank %d: %w", lanes, n.end.peer, err)}
		}
		n.lanes = lanes
	}
	return nil
}

func bytesOf[T any](s []T) []byte { return mem.Of(s).Bytes() }
