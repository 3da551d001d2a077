package grid

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

const turnBytes = 512 // of shared memory, at most, for turns between the threads of a block

// A base is what all operations of a rank need: memory, modules, tables, the ends of queues, the control block, and
// the launch of a kernel.
type base struct {
	*memory
	modules
	tables
	ends

	control      *Control
	rank         sched.Rank
	ranks        int
	threads      int // see Options
	blocks       int
	directBlocks int
	minSlice     int
	maxShared    int         // bytes of a block
	priority     int         // of kernels
	signs        uintptr     // addresses of sign boards, in order of rank
	whole        bool        // all ranks' mailboxes are in reach, and lines arrive there whole: over NVLink
	call         cuda.Launch // the current one: a launch allocates nothing
}

func newBase(m *memory, l Links, o *Options) base {
	return base{
		memory: m, modules: modules{memory: m, ranks: o.Ranks, text: ptxText, found: map[moduleKey]*module{},
			dynamic: map[string]int{}},
		tables: tables{memory: m, rank: o.Rank}, ends: ends{memory: m, links: l, ranks: o.Ranks},
		rank: o.Rank, ranks: o.Ranks, threads: o.Threads, blocks: o.Blocks, directBlocks: o.DirectBlocks,
		minSlice: o.MinSlice,
	}
}

func (b *base) open(o *Options) (err error) {
	if b.capability, err = cuda.Capability(b.driver, b.dev); err != nil {
		return err
	}
	if err = b.prioritize(); err != nil {
		return err
	}
	if b.maxShared, err = b.driver.DeviceGetAttribute(cuda.AttrMaxSharedPerBlock, b.dev); err != nil {
		return err
	}
	b.maxShared -= turnBytes
	if b.blocks == 0 {
		if b.blocks, err = b.driver.DeviceGetAttribute(cuda.AttrMultiprocessorCount, b.dev); err != nil {
			return err
		}
	}
	if b.control, err = newControl(b.driver, b.store, b.ranks); err != nil {
		return err
	}
	if err = b.memory.open(); err != nil {
		return err
	}
	b.tables.control = b.control
	if err = b.tables.open(o); err != nil {
		return err
	}
	if err = b.ends.allocate(); err != nil {
		return err
	}
	return b.writeSigns()
}

// writeSigns writes down the addresses of the sign boards, if there are any.
func (b *base) writeSigns() (err error) {
	signs := b.links.Signs()
	if signs == nil {
		return nil
	}
	if b.signs, err = b.carve(8 * b.ranks); err != nil {
		return err
	}
	return b.write(b.signs, bytesOf(signs))
}

// prioritize gives kernels the greatest priority where the driver has it for launches: peers wait
// for these kernels, which are short of blocks beside a kernel that computes.
func (b *base) prioritize() error {
	version, err := b.driver.DriverGetVersion()
	if err != nil || version < 11080 {
		return err
	}
	return b.quietly(func() error {
		_, b.priority, err = b.driver.CtxGetStreamPriorityRange()
		return err
	})
}

// close frees memory and modules. All kernels are done.
func (b *base) close() error {
	if b.store == nil {
		return nil
	}
	err := b.modules.close()
	b.tables.close()
	if b.control != nil {
		b.control.free(b.store)
	}
	return errors.Join(err, b.memory.close())
}

// Control returns the control block of this rank.
func (b *base) Control() *Control { return b.control }

// End tells the device that all is over. Kernels that wait end, and those that start
// later, by a graph for instance, touch nothing that the peers or the caller own, except
// that a short one may load from its own In before it knows. They count in
// Control.Progress. When End has returned the peers' memory may go; the Engine's own
// has to stay while graphs hold its kernels.
func (b *base) End() error {
	b.control.Abort()
	m, _, err := b.kernel(nil)
	if err != nil {
		return err
	}
	return b.quietly(func() error {
		l := cuda.Launch{Block: cuda.Dim3{X: 32}, Stream: b.stream}
		if err := b.driver.LaunchKernel(m.over, &l, cuda.ArgsOf(&overArgs{uint64(b.local)})); err != nil {
			return err
		}
		return b.driver.StreamSynchronize(b.stream)
	})
}

// overArgs is struct OverArgs of kernels/cuda/run.cu.
type overArgs struct{ local uint64 }

// shape sets the grid and the stream of the current launch.
func (b *base) shape(blocks, threads, shared int, s cuda.Stream) {
	b.call = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)}, Shared: shared,
		Stream: s}
}

// queue launches a kernel by the current launch, and records event after it unless that is 0.
func (b *base) queue(f cuda.Function, args []byte, event cuda.Event) error {
	b.call.Priority = b.priority
	return cuda.LaunchAndRecord(b.driver, f, &b.call, args, event)
}

// launch uploads a table that has been filled, and queues a kernel with args, which name the table.
func (b *base) launch(f cuda.Function, t table, args []byte, event cuda.Event) error {
	if err := b.upload(t, b.call.Stream); err != nil {
		return err
	}
	if err := b.queue(f, args, event); err != nil {
		return err // no kernel will store the token
	}
	if t.token != 0 {
		b.space.Commit(t.token)
	}
	return nil
}

// prepared loads the module of a source for a Reducer.
func (b *base) prepared(r *kernels.Reducer, source string) error {
	_, _, err := b.module(r, source)
	return err
}
