package ringo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/gpucomm"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/hostcomm"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/built"
)

// A Comm is one rank's membership in a communicator. Its operations happen in
// the order in which they are called; from several goroutines that order is
// theirs to arrange, for it must be the same on all ranks. Abort and the
// methods that only ask may be called at any time. Methods of a nil Comm whose result
// is an error return ErrInvalid.
type Comm struct {
	*membership
	ctx context.Context // of With, nil for no bound
}

// A membership is what a Comm and those that With makes of it share.
type membership struct {
	unbound *Comm

	cfg   Config
	group bootstrap.Group
	log   *slog.Logger
	life  *life.Life

	net   *paths.Net
	met   atomic.Pointer[[]paths.Profile] // of net
	notes []string                        // lines about the chosen paths, see Paths
	host  *hostcomm.Comm
	gpu   *gpucomm.Comm // nil if no rank has a GPU
	noGPU string        // why GPU memory cannot be used, "" if it can
	quota *gpupaths.Quota

	stillborn bool // a rank died in Open: there are no paths; life has the error

	queue  queue
	closed atomic.Bool
	past   func() HistoryRecord
	quiet  func() // stops listening for Config.HistorySignal, and tells package opened
}

func init() { life.Of = func(c any) *life.Life { return c.(*Comm).life } }

// absent is the error of a method of a nil Comm, nil of another.
func (c *Comm) absent(op string) error {
	if c != nil {
		return nil
	}
	return &Error{Op: op, Rank: -1, Peer: -1, Err: fmt.Errorf("%w: the Comm is nil, as Split's of a rank with NoColor",
		ErrInvalid)}
}

// Rank is this rank's number.
func (c *Comm) Rank() int { return c.life.Rank }

// Size is the number of ranks, 0 of a nil Comm.
func (c *Comm) Size() int {
	if c == nil {
		return 0
	}
	return c.life.Size
}

// onGPU reports whether GPU memory can be used.
func (c *Comm) onGPU() bool { return built.GPU && c.noGPU == "" }

// Prepare loads and allocates what a call on GPU memory needs, as its kernels, and carries
// nothing out: Do only queues the call then. Without it the first call of a kind, type and
// algorithm does so, which takes up to 0.1 s, and a driver may let it wait for the kernels
// that run on the GPU. So call it where these might wait for a call that this rank makes
// later: before operations of several communicators that overlap in another order on other
// ranks. No other rank takes part. The call's memory and stream have to be live.
func (c *Comm) Prepare(call *Call) error {
	if err := c.absent("Prepare"); err != nil {
		return err
	}
	if err := call.Check(c.life.Rank, c.life.Size); err != nil {
		return c.life.Locate(call, 0, err, nil)
	}
	if !call.OnDevice() || !c.onGPU() {
		return nil
	}
	if err := c.life.Turn.Lock(context.Background()); err != nil {
		return c.life.Locate(call, 0, err, nil)
	}
	defer c.life.Turn.Unlock()
	return c.gpu.Prepare(call)
}

// Abort ends all operations of the communicator, here and on all other ranks,
// and always returns: at most half a second later, when the reason is on its way
// to the others, and what Config.History wants is written. Close is still to be called.
func (c *Comm) Abort(reason error) { c.life.Abort(reason) }

// Err is why an operation of this rank has failed and none can succeed any more, nil while the communicator is well. If
// another rank dies or aborts while this one waits for nothing, Err is nil until this rank's next operation. It waits
// only where kernels have stopped and it is not yet known why, at most 3 s.
func (c *Comm) Err() error {
	if err := c.absent("Err"); err != nil {
		return err
	}
	return c.life.Told(c.err())
}

func (c *Comm) err() error {
	if c.gpu != nil && c.onGPU() {
		return c.gpu.Err()
	}
	return c.life.Err()
}

// Failure is why no operation of this rank can succeed any more, nil while one may: Err, or what this rank's next
// operation will meet. Culprits of the *Error are who died, aborted or failed. It does not wait.
func (c *Comm) Failure() error {
	if err := c.absent("Failure"); err != nil {
		return err
	}
	return c.life.Failure()
}

// History is this rank's last 64 calls, the call that it is in, and why the communicator has
// failed. It is always kept, and costs a collective nothing that could be measured. It may be called at any
// time; see also Config.History.
func (c *Comm) History() HistoryRecord { return c.past() }

// Close leaves the communicator. It waits for operations that were started and gives everything back, as soon as no
// kernel can need it. Other ranks may still receive what this one has sent: where that goes over a network and is more
// than the system takes, Close waits for those that have not closed, and says what is lost if a rank takes nothing for
// Config.Timeout. Calls after Close return ErrClosed, and so do those that wait for their turn behind it. With a GPU,
// Close waits for what runs, graphs included, and the last Close of a process also for those of other processes, at
// most 10 s for all communicators together. A graph that holds operations of the communicator keeps the memory that
// they need. If it is launched after Close they do nothing, except for copies by copy engines, so windows must not be
// freed before such a graph is destroyed; Synchronize then says that it was launched.
//
// Close returns why the communicator has failed, if an operation of this rank has met that and nothing has returned it
// before: no call, Wait, Err, Synchronize or Drain. The results of such a rank may be wrong.
func (c *Comm) Close() error {
	if err := c.absent("Close"); err != nil {
		return err
	}
	if err := c.life.Turn.Inside(); err != nil {
		return c.life.ErrorIn("Close", err)
	}
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.queue.close()
	err := c.life.Turn.Lock(context.Background())
	if c.onGPU() {
		err = errors.Join(err, c.gpu.Finish())
	}
	c.life.Close() // before the next call has its turn: what it would use is given back below
	c.life.Turn.Unlock()
	c.quiet()
	if built.GPU && c.gpu != nil { // its memory is given back later, when the others have left too
		c.group.Leave()
	}
	return errors.Join(c.life.Untold(), err, c.release())
}

// release gives everything back.
func (c *Comm) release() error {
	if built.GPU {
		c.quota.GiveBack()
	}
	host := func() error {
		var err error
		if c.net != nil {
			// others still receive what this rank sent, but none may wait for this rank itself
			farewell := time.AfterFunc(time.Second, c.group.Leave)
			err = c.net.Close()
			farewell.Stop()
		}
		return errors.Join(err, c.group.Close())
	}
	if !built.GPU || c.gpu == nil {
		return host()
	}
	return c.gpu.Leave(host)
}

// Device is the rank's GPU, nil if it has none.
func (c *Comm) Device() *gpu.Device { return c.cfg.Device }

// Synchronize waits until the work of a stream of this rank's GPU is done and
// returns why the communicator has failed, if it has.
func (c *Comm) Synchronize(s gpu.Stream) error {
	if err := c.absent("Synchronize"); err != nil {
		return err
	}
	if !built.GPU || c.cfg.Device == nil {
		return fmt.Errorf("%w: this rank has no GPU", ErrInvalid)
	}
	if err := c.cfg.Device.Synchronize(s); err != nil {
		return err
	}
	if !c.onGPU() {
		return c.Err()
	}
	return c.life.Told(c.gpu.Verdict())
}

// Drain waits until what this rank has queued on its GPU has ended, whatever streams it is on. It returns why the
// communicator has failed, if an operation of this rank has met that. Without a GPU there is nothing to wait for.
func (c *Comm) Drain() error {
	if err := c.absent("Drain"); err != nil {
		return err
	}
	if c.onGPU() {
		err := c.life.Turn.Lock(context.Background())
		if err == nil {
			err = c.gpu.Drain()
			c.life.Turn.Unlock()
		}
		if err != nil {
			return err
		}
	}
	return c.Err()
}

// Register makes a span of the rank's GPU memory known to all ranks, so that
// collectives on it move data from GPU to GPU without staging. All ranks call it
// together, with spans of the same length, in the order of their other calls; it
// waits for them, at most Config.JoinTimeout, so ranks of one process call it from
// a goroutine each. The memory may be any of the GPU's, of gpu.Device.Alloc or the
// caller's own, the virtual-memory API included, but not part of two windows. Where
// several GPUs are in one process, copy engines serve only memory that is mapped, such as
// gpu.Device.AllocMapped gives: copies to other memory might wait for other threads' calls.
//
// A collective may use registered memory if the buffers that its kernels reach lie
// wholly in windows, at the same offset of the same window on all ranks: In of
// ReduceScatter, Out of AllGather, AlltoAll and Broadcast, both of AllReduce. Ranks
// that break this get the error of calls that do not match. If Config.Algo is "window"
// or "copies" the same holds for In of Gather, Out of Scatter, and both of Reduce,
// whose Out then has to be given on all ranks; otherwise they do not use windows, so
// that a root may be in place.
//
// On the call's stream the memory is the rank's own before and after a collective,
// as without windows; what else is done to it meanwhile, other ranks may see. A
// communicator of Split has no windows.
//
// Where GPUs do not reach each other, or the memory is of a kind that cannot be
// shared, the Window has no effect, and Reason says why. What is wrong with the
// memory of one rank is an error on all (ErrInvalid), and changes nothing.
func (c *Comm) Register(r Region) (*Window, error) {
	if err := c.absent("Register"); err != nil {
		return nil, err
	}
	if c.stillborn {
		return nil, c.life.ErrorOf("Register", c.life.Refuse())
	}
	if !c.onGPU() {
		return nil, c.life.ErrorIn("Register", fmt.Errorf("%w: GPU memory: %s", ErrUnsupported, c.noGPU))
	}
	return c.gpu.Register(r)
}

// Footprint is the memory that the communicator has on its rank's GPU. It is nil, which has no
// bytes, for communicators without GPU memory.
func (c *Comm) Footprint() *Footprint {
	if !c.onGPU() {
		return nil
	}
	return c.gpu.Footprint()
}

// Paths says over which transports this rank reaches the others, and why not
// over better ones.
func (c *Comm) Paths() []string { return c.notes }

// Cards are the Config.Card of all ranks, by rank; nil where a rank died before they were exchanged. The slices are the
// communicator's own.
func (c *Comm) Cards() [][]byte {
	if c.stillborn {
		return nil
	}
	cards := make([][]byte, c.Size())
	for r := range cards {
		cards[r] = c.net.Profiles[r].Card
	}
	return cards
}

// Transport names the transport to a peer.
func (c *Comm) Transport(peer int) string {
	if c.stillborn {
		return ""
	}
	return c.host.Via(peer)
}

// DeviceTransport names the path of GPU memory to a peer: "p2p", "host memory",
// "bridge over socket"; "" if there is none, and for the rank itself.
func (c *Comm) DeviceTransport(peer int) string {
	if !c.onGPU() {
		return ""
	}
	return c.gpu.Via(peer)
}
