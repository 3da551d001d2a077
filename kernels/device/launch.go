package device

import (
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// MaxSources is the most sources that may lie anywhere, see Args.Srcs.
const MaxSources = 8

// MaxRows is the most sources that lie one after the other, see Args.Rows.
const MaxRows = 1 << 20

// Threads of a block. combine is compiled for 512, and has enough loads under
// way with two such blocks on a multiprocessor.
const (
	combineThreads = 512
	plainThreads   = 256
	fewThreads     = 128 // more only when each multiprocessor has a block
	vector         = 16  // bytes that a thread of combine moves at once
)

// Args are the arguments of a launch.
type Args struct {
	// Dst and each of Srcs, 1 to MaxSources regions, have the same length. Dst may
	// be a source; otherwise it overlaps none. All start at multiples of the element's
	// size; the kernel is several times faster if the last four bits of their
	// addresses are the same.
	Dst  mem.Region
	Srcs []mem.Region
	// Rows, when not 0, is the number of sources, 1 to MaxRows, which lie one after the
	// other in the single region of Srcs. All or none are contributions.
	Rows int
	// Contributions and Finish are as for kernels.Reducer.CombineAll.
	Contributions uint64
	Finish        bool
	// Scalar, when not 0, is the address of an element in device memory that
	// takes the place of premulsum's scalar. It is read when the kernel runs.
	Scalar uintptr
}

// An ArgumentError is a wrong argument of a launch.
type ArgumentError struct {
	Kernel   string // "bfloat16_sum_sm_80"
	Argument string // "dst", "srcs[3]"
	Reason   string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("device: %s: %s: %s", e.Kernel, e.Argument, e.Reason)
}

// args is struct Args of kernels/cuda/combine.cu.
type args struct {
	dst    uint64
	src    [MaxSources]uint64
	stride uint64
	count  uint64
	scalar uint64
	value  uint64
	k      uint32
	scaled uint32
	finish uint32
	_      uint32
}

// A frame holds the arguments of a launch, so that launching does not allocate.
type frame struct {
	args   args
	launch cuda.Launch
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// Launch queues dst = srcs[0] ⊕ srcs[1] ⊕ … on a stream of the context, which
// has to be current on this thread. It does not allocate. Errors are
// *ArgumentError and *cuda.Error; empty regions are nothing to do.
func (k *Kernel) Launch(s cuda.Stream, a *Args) error { return k.launch(&k.m.combine, s, a) }

func (k *Kernel) launch(f *kernel, s cuda.Stream, a *Args) error {
	if err := k.check(a); err != nil {
		return err
	}
	size := k.t.Size()
	count := a.Dst.Len() / size
	if count == 0 {
		return nil
	}
	fr := frames.Get().(*frame)
	defer frames.Put(fr)
	fr.args = args{
		dst:    uint64(a.Dst.Ptr()),
		count:  uint64(count),
		scalar: uint64(a.Scalar),
		value:  k.program.Value,
		k:      uint32(a.sources()),
	}
	if k.program.Scales {
		fr.args.scaled = uint32(a.Contributions)
	}
	if a.Finish && k.program.Finishes {
		fr.args.finish = 1
	}
	apart := uintptr(0)
	for i := range min(MaxSources, a.sources()) {
		p := a.source(i).Ptr()
		fr.args.src[i] = uint64(p)
		apart |= p ^ a.Dst.Ptr()
	}
	if a.Rows > 0 {
		fr.args.stride = uint64(MaxSources * a.Dst.Len())
	}
	work := count // elements, or vectors: one a thread at a time
	if f == &k.m.combine && apart%vector == 0 {
		work = max(a.Dst.Len()/vector, min(count, 2*vector/size))
	}
	// Little work is spread over the multiprocessors, by whole warps.
	threads := min(f.threads, max(fewThreads, (work/k.c.sms+31)&^31), (work+31)&^31)
	fr.launch = cuda.Launch{
		Grid:   cuda.Dim3{X: uint32(min(f.maxBlocks, (work+threads-1)/threads))},
		Block:  cuda.Dim3{X: uint32(threads)},
		Stream: s,
	}
	return k.c.driver.LaunchKernel(f.f, &fr.launch, cuda.ArgsOf(&fr.args))
}

// sources is the number of sources.
func (a *Args) sources() int {
	if a.Rows > 0 {
		return a.Rows
	}
	return len(a.Srcs)
}

// source is the i-th source.
func (a *Args) source(i int) mem.Region {
	if a.Rows > 0 {
		return a.Srcs[0].Slice(i*a.Dst.Len(), a.Dst.Len())
	}
	return a.Srcs[i]
}

// check finds the errors that can be found without asking the driver.
func (k *Kernel) check(a *Args) error {
	switch {
	case a.Rows == 0 && (len(a.Srcs) < 1 || len(a.Srcs) > MaxSources):
		return k.wrong("srcs", fmt.Sprintf("%d sources, want 1 to %d", len(a.Srcs), MaxSources))
	case a.Rows < 0 || a.Rows > MaxRows:
		return k.wrong("rows", fmt.Sprintf("%d, want 1 to %d", a.Rows, MaxRows))
	case a.Rows > 0 && len(a.Srcs) != 1:
		return k.wrong("srcs", fmt.Sprintf("%d regions of rows, want 1", len(a.Srcs)))
	case a.Rows > 0 && a.Srcs[0].Len() != a.Rows*a.Dst.Len():
		return k.wrong("srcs[0]", fmt.Sprintf("%d bytes, but %d rows like dst have %d", a.Srcs[0].Len(), a.Rows,
			a.Rows*a.Dst.Len()))
	case a.Rows > MaxSources && a.Contributions+1 > 1:
		return k.wrong("contributions", fmt.Sprintf("%#x: want all or none of %d rows", a.Contributions, a.Rows))
	}
	if reason := k.misplaced(a.Dst, a.Dst.Len()); reason != "" {
		return k.wrong("dst", reason)
	}
	for i := range min(MaxSources, a.sources()) { // further rows lie behind, in the same region
		src := a.source(i)
		reason := k.misplaced(src, a.Dst.Len())
		if reason == "" && src.Ptr() != a.Dst.Ptr() && src.Overlaps(a.Dst) {
			reason = "it overlaps dst without starting at the same byte"
		}
		if reason != "" {
			return k.wrong(fmt.Sprintf("srcs[%d]", i), reason)
		}
	}
	if a.Contributions>>a.sources() != 0 && a.Contributions != ^uint64(0) {
		return k.wrong("contributions", fmt.Sprintf("%#x names more than %d sources", a.Contributions, a.sources()))
	}
	if a.Scalar != 0 {
		switch size := uintptr(k.t.Size()); {
		case k.program.Op != "premulsum":
			return k.wrong("scalar", "only premulsum has one")
		case a.Scalar%size != 0:
			return k.wrong("scalar", fmt.Sprintf("address %#x is no multiple of the element's %d bytes", a.Scalar, size))
		}
	}
	return nil
}

// misplaced says what is wrong with a region that should have n bytes, "" if nothing is.
func (k *Kernel) misplaced(r mem.Region, n int) string {
	size := k.t.Size()
	switch {
	case r.Len() != n:
		return fmt.Sprintf("%d bytes, but dst has %d", r.Len(), n)
	case n%size != 0:
		return fmt.Sprintf("%d bytes are no whole number of elements of %d", n, size)
	case n == 0:
		return ""
	case r.IsNil():
		return "null"
	case r.IsHost():
		return "host memory: register it and pass its device pointer"
	case !k.c.peers[r.Dev()]:
		return fmt.Sprintf("memory of device %d, which device %d does not reach: enable peer access", r.Dev(), k.c.device)
	case r.Ptr()%uintptr(size) != 0:
		return fmt.Sprintf("address %#x is no multiple of the element's %d bytes", r.Ptr(), size)
	case r.Ptr()+uintptr(n) < r.Ptr():
		return fmt.Sprintf("%d bytes from %#x exceed the address space", n, r.Ptr())
	}
	return ""
}

func (k *Kernel) wrong(argument, reason string) error {
	return &ArgumentError{k.m.name.String(), argument, reason}
}
