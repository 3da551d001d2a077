package cudaemu_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// TestExchange has kernels in two processes send each other numbers by way of
// IPC memory, by bulk copies too, and of mapped memory, waiting for each other's flags.
func TestExchange(t *testing.T) {
	for _, way := range []string{"ipc", "bulk", "mapped"} {
		t.Run(way, func(t *testing.T) {
			e := start(t, cudaemu.Config{Devices: 2, Seed: 5})
			c := startChild(e, way, 20)
			mine, theirs, out := e.trade(way, c)
			launchOf(e, textOf(way), "exchange", 1, 1, 0, &exchangeArgs{theirs, mine, out, 3, 20})
			e.ok(e.CtxSynchronize())
			require.Equal(t, uint32(5*20*21/2), e.word(out))
			c.say("done") // both have to keep their memory until now
			require.Equal(t, "done", c.hear())
			require.Equal(t, 1, e.Opened())
			e.clean()
		})
	}
}

// A store of another process that nothing orders before its flag is a race.
func TestRaceBetweenProcesses(t *testing.T) {
	for _, way := range []string{"ipc", "mapped"} {
		t.Run(way, func(t *testing.T) {
			e := start(t, cudaemu.Config{Devices: 2, Seed: 5})
			c := startChild(e, way+" loose", 20)
			mine, theirs, out := e.trade(way, c)
			launch(e, "exchange", 0, &exchangeArgs{theirs, mine, out, 3, 20})
			e.ok(e.CtxSynchronize())
			c.say("done")
			require.Equal(t, "done", c.hear())
			reports := e.Reports()
			require.NotEmpty(t, reports)
			require.Contains(t, reports[0].Error(), fmt.Sprintf("store of 4 bytes by kernel exchange, line %d, device 1, of process %d",
				1+strings.Count(ptxText[:strings.Index(ptxText, "st.global.u32 [%rd5], %r6;")], "\n"), c.cmd.Process.Pid))
		})
	}
}

// TestDeadPeer kills the other process while a kernel waits for it: its memory
// stays valid, the flag does not come.
func TestDeadPeer(t *testing.T) {
	e := start(t, cudaemu.Config{Devices: 2, Seed: 5, Stall: 100 * time.Millisecond})
	c := startChild(e, "ipc", 20)
	mine, theirs, out := e.trade("ipc", c)
	require.NoError(t, c.cmd.Process.Kill())
	c.cmd.Wait()
	e.ok(e.MemsetD8(theirs, 0, 128)) // still there
	launch(e, "exchange", 0, &exchangeArgs{theirs, mine, out, 3, 20})
	e.is(e.CtxSynchronize(), cuda.ErrLaunchTimeout)
	require.Contains(t, e.Reports()[0].Error(), "kernel exchange, line")
}

// A child is another process of this test, which talks over its standard files.
type child struct {
	*env
	cmd *exec.Cmd
	in  *os.File
	out *os.File
}

func startChild(e *env, way string, rounds int) *child {
	e.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "CUDAEMU_CHILD="+way, fmt.Sprint("CUDAEMU_ROUNDS=", rounds))
	cmd.Stderr = os.Stderr
	// Files of our own: their descriptors are 3 and 4 there.
	hear, theirOut, err := os.Pipe()
	e.ok(err)
	theirIn, say, err := os.Pipe()
	e.ok(err)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	e.ok(cmd.Start())
	theirIn.Close()
	theirOut.Close()
	c := &child{env: e, cmd: cmd, in: say, out: hear}
	e.Cleanup(func() {
		say.Close()
		hear.Close()
		cmd.Wait()
	})
	return c
}

func textOf(way string) string {
	switch {
	case way == "bulk":
		return bulkText
	case strings.HasSuffix(way, " loose"): // the data are not released
		return strings.Replace(ptxText, "fence.acq_rel.sys;\n\tst.relaxed", "\n\tst.relaxed", 1)
	}
	return ptxText
}

func (c *child) say(s string) { fmt.Fprintln(c.in, s) }
func (c *child) hear() string {
	var s string
	fmt.Fscanln(c.out, &s)
	return s
}

// trade makes memory for the exchange, shares it and opens the other's.
func (e *env) trade(way string, c *child) (mine, theirs, out uintptr) {
	e.Helper()
	out = e.alloc(64, true)
	if !strings.HasPrefix(way, "mapped") {
		mine = e.alloc(256, true)
		h := must.Get(e.IpcGetMemHandle(mine))
		c.say(hex.EncodeToString(h[:]))
		b := must.Get(hex.DecodeString(c.hear()))
		require.Len(e, b, len(h))
		copy(h[:], b)
		theirs = must.Get(e.IpcOpenMemHandle(h))
		e.Cleanup(func() { e.IpcCloseMemHandle(theirs) })
		base, n, err := e.MemGetAddressRange(theirs + 8)
		e.ok(err)
		require.Equal(e, theirs, base)
		require.Equal(e, 256, n)
		return mine, theirs, out
	}
	d := must.Get(e.CtxGetDevice())
	v := e.virtual(int(d), true)
	e.ok(e.MemsetD8(v.p, 0, 256))
	e.ok(e.CtxSynchronize())
	fd := must.Get(e.MemExportToShareableHandle(v.h))
	file := os.NewFile(uintptr(fd), "memory")
	e.Cleanup(func() { file.Close() })
	c.say(fmt.Sprintf("%d/%d", os.Getpid(), fd))
	var pid, other int
	must.Get(fmt.Sscanf(c.hear(), "%d/%d", &pid, &other))
	// A socket would carry the descriptor; /proc is shorter.
	their := must.Get(os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, other), os.O_RDWR, 0))
	defer their.Close()
	h := must.Get(e.MemImportFromShareableHandle(int(their.Fd())))
	p := must.Get(e.MemAddressReserve(v.n, 0))
	e.ok(e.MemMap(p, v.n, h))
	e.ok(e.MemRelease(h))
	e.ok(e.MemSetAccess(p, v.n, d))
	e.Cleanup(func() {
		e.ok(e.MemUnmap(p, v.n))
		e.ok(e.MemAddressFree(p, v.n))
	})
	return v.p, p, out
}

// TestChild is the other process of TestExchange.
func TestChild(t *testing.T) {
	way := os.Getenv("CUDAEMU_CHILD")
	if way == "" {
		t.Skip("run by TestExchange")
	}
	if kind, freed := strings.CutSuffix(way, " freed"); freed {
		freedChild(t, kind)
	}
	var rounds uint32
	must.Get(fmt.Sscan(os.Getenv("CUDAEMU_ROUNDS"), &rounds))
	e := start(t, cudaemu.Config{Devices: 2, Seed: 6})
	e.use(1)
	c := &child{env: e, in: os.NewFile(4, "out"), out: os.NewFile(3, "in")}
	mine, theirs, out := e.trade(way, c)
	launchOf(e, textOf(way), "exchange", 1, 1, 0, &exchangeArgs{theirs, mine, out, 5, rounds})
	e.ok(e.CtxSynchronize())
	require.Equal(t, 3*rounds*(rounds+1)/2, e.word(out))
	e.clean()
	c.say("done")
	c.hear()
}

// TestHandles opens handles that are wrong, on two machines of one process,
// which are to each other like two processes.
func TestHandles(t *testing.T) {
	a := start(t, cudaemu.Config{Devices: 2})
	b := start(t, cudaemu.Config{Devices: 2})
	a.use(0)
	b.use(0)
	p, err := a.MemAlloc(5 << 20)
	a.ok(err)
	a.ok(a.MemsetD8(p, 9, 5<<20))
	a.ok(a.CtxSynchronize())
	h, err := a.IpcGetMemHandle(p + 77)
	a.ok(err)

	a.is(must.Err(a.IpcOpenMemHandle(h)), cuda.ErrInvalidContext) // its own
	q, err := b.IpcOpenMemHandle(h)
	b.ok(err)
	require.Equal(t, uint32(0x09090909), b.word(q+5<<20-4))
	_, err = b.IpcOpenMemHandle(h)
	b.is(err, cuda.ErrAlreadyMapped)
	_, err = b.IpcGetMemHandle(q)
	b.is(err, cuda.ErrInvalidValue) // not its own to pass on
	b.is(b.MemFree(q), cuda.ErrInvalidValue)
	d, err := b.PointerGetAttribute(cuda.PointerDeviceOrdinal, q)
	b.ok(err)
	require.Zero(t, d)
	b.ok(b.IpcCloseMemHandle(q))

	_, err = b.IpcOpenMemHandle(cuda.IPCHandle{})
	b.is(err, cuda.ErrInvalidValue)
	for i := range 56 { // a bit of it wrong
		bad := h
		bad[i] ^= 4
		require.Error(t, must.Err(b.IpcOpenMemHandle(bad)), "byte %d", i)
	}
	_, err = b.IpcOpenEventHandle(h)
	b.is(err, cuda.ErrMapFailed) // of memory
	a.ok(a.MemFree(p))
	_, err = b.IpcOpenMemHandle(h)
	b.is(err, cuda.ErrInvalidHandle) // freed

	other := start(t, cudaemu.Config{Host: "elsewhere"})
	other.use(0)
	h, err = other.IpcGetMemHandle(other.alloc(64, true))
	other.ok(err)
	b.use(0)
	_, err = b.IpcOpenMemHandle(h)
	b.is(err, cuda.ErrInvalidValue)

	// A device that the other does not see, and one that cannot be accessed.
	a.use(1)
	h, err = a.IpcGetMemHandle(a.alloc(64, true))
	a.ok(err)
	one := start(t, cudaemu.Config{})
	one.use(0)
	_, err = one.IpcOpenMemHandle(h)
	one.is(err, cuda.ErrInvalidDevice)
	apart := start(t, cudaemu.Config{Devices: 2, Peers: func(a, b int) bool { return false }})
	apart.use(0)
	_, err = apart.IpcOpenMemHandle(h)
	apart.is(err, cuda.ErrPeerAccessUnsupported)
	apart.CtxSetCurrent(0)
}

// TestEventsBetween has one machine wait for an event that another records.
func TestEventsBetween(t *testing.T) {
	a := start(t, cudaemu.Config{})
	b := start(t, cudaemu.Config{})
	a.use(0)
	g := a.gate()
	ev := a.event(cuda.EventInterprocess | cuda.EventDisableTiming)
	h, err := a.IpcGetEventHandle(ev)
	a.ok(err)
	b.use(0)
	theirs, err := b.IpcOpenEventHandle(h)
	b.ok(err)
	_, err = b.IpcGetEventHandle(theirs)
	b.is(err, cuda.ErrInvalidHandle)

	a.use(0)
	a.ok(a.StreamWaitValue32(0, address(g), 1, cuda.WaitGEQ))
	a.ok(a.EventRecord(ev, 0))
	b.use(0)
	mark := b.event(cuda.EventDisableTiming)
	b.ok(b.StreamWaitEvent(0, theirs, 0))
	b.ok(b.EventRecord(mark, 0))
	for range 20 {
		done, err := b.EventQuery(mark)
		b.ok(err)
		require.False(t, done)
		done, err = b.EventQuery(theirs)
		b.ok(err)
		require.False(t, done)
	}
	g.Store(1)
	b.ok(b.EventSynchronize(mark))
	b.ok(b.EventSynchronize(theirs))
	b.ok(b.EventDestroy(theirs))
}

func FuzzOpenHandle(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(strings.Repeat("Remu", 16)))
	m, err := cudaemu.New(cudaemu.Config{})
	require.NoError(f, err)
	ctx, err := m.DevicePrimaryCtxRetain(0)
	require.NoError(f, err)
	f.Cleanup(func() { m.DevicePrimaryCtxRelease(0); m.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		var h cuda.IPCHandle
		copy(h[:], b)
		require.Error(t, cuda.With(m, ctx, func() error { return must.Err(m.IpcOpenMemHandle(h)) }))
		require.Error(t, cuda.With(m, ctx, func() error { return must.Err(m.IpcOpenEventHandle(h)) }))
	})
}

// FuzzImport imports files that may look like device memory.
func FuzzImport(f *testing.F) {
	m, err := cudaemu.New(cudaemu.Config{})
	require.NoError(f, err)
	f.Cleanup(func() { m.Close() })
	h, err := m.MemCreate(2<<20, cuda.AllocationProp{Shareable: true})
	require.NoError(f, err)
	fd, err := m.MemExportToShareableHandle(h)
	require.NoError(f, err)
	file := os.NewFile(uintptr(fd), "memory")
	page := make([]byte, 64)
	_, err = file.ReadAt(page, 0)
	require.NoError(f, err)
	file.Close()
	f.Add(page, int64(2<<20))
	f.Add(page, int64(8192))
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, label []byte, size int64) {
		if size < 0 || size > 16<<20 {
			return
		}
		file := must.Get(os.CreateTemp(t.TempDir(), ""))
		defer file.Close()
		require.NoError(t, file.Truncate(size))
		must.Get(file.WriteAt(label, 0))
		if h, err := m.MemImportFromShareableHandle(int(file.Fd())); err == nil {
			require.NoError(t, m.MemRelease(h))
		}
	})
}

// bulkText has the kernel exchange of ptxText with bulk copies to and from the other's
// memory: data in slots 0 and 16.
const bulkText = `.version 8.0
.target sm_90
.address_size 64
.visible .entry exchange(.param .u64 theirs, .param .u64 mine, .param .u64 out, .param .u32 value, .param .u32 rounds)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<7>;
	.shared .align 16 .b8 sent[16], got[16];
	.shared .align 8 .b64 full;
	ld.param.u64 %rd1, [theirs];
	ld.param.u64 %rd2, [mine];
	ld.param.u64 %rd3, [out];
	ld.param.u32 %r1, [value];
	ld.param.u32 %r2, [rounds];
	mbarrier.init.shared.b64 [full], 1;
	mov.u32 %r3, 0;
	mov.u32 %r4, 0;
next:
	and.b32 %r8, %r3, 1;
	add.u32 %r3, %r3, 1;
	and.b32 %r5, %r3, 1;
	mul.wide.u32 %rd4, %r5, 16;
	add.s64 %rd5, %rd1, %rd4;
	mul.lo.u32 %r6, %r1, %r3;
	st.shared.v4.u32 [sent], {%r6, %r6, %r6, %r6};
	fence.proxy.async;
	cp.async.bulk.global.shared::cta.bulk_group [%rd5], [sent], 16;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
	fence.acq_rel.sys;
	st.relaxed.sys.global.u32 [%rd1+64], %r3;
wait:
	ld.relaxed.sys.global.u32 %r7, [%rd2+64];
	setp.lt.u32 %p1, %r7, %r3;
	@%p1 bra wait;
	fence.acq_rel.sys;
	add.s64 %rd6, %rd2, %rd4;
	mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [got], [%rd6], 16, [full];
loaded:
	mbarrier.try_wait.parity.shared.b64 %p1, [full], %r8;
	@!%p1 bra loaded;
	ld.shared.u32 %r7, [got+12];
	add.u32 %r4, %r4, %r7;
	setp.lt.u32 %p1, %r3, %r2;
	@%p1 bra next;
	st.global.u32 [%rd3], %r4;
	ret;
}
`
