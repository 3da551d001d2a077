package cudatest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

func testDevices(e *env) {
	n := must.Get(e.d.DeviceGetCount())
	require.Positive(e, n)
	v := must.Get(e.d.DriverGetVersion())
	require.GreaterOrEqual(e, v, 11000)

	uuids := map[[16]byte]bool{}
	for i := range n {
		dev := must.Get(e.d.DeviceGet(i))
		name := must.Get(e.d.DeviceGetName(dev))
		require.NotEmpty(e, name)
		uuid := must.Get(e.d.DeviceGetUuid(dev))
		uuids[uuid] = true
		pci := must.Get(e.d.DeviceGetPCIBusId(dev))
		require.Regexp(e, `^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$`, pci)
		mem := must.Get(e.d.DeviceTotalMem(dev))
		require.Positive(e, mem)
		for attr, least := range map[cuda.DeviceAttribute]int{
			cuda.AttrWarpSize: 32, cuda.AttrMaxThreadsPerBlock: 1024, cuda.AttrMultiprocessorCount: 1,
			cuda.AttrComputeCapabilityMajor: 7, cuda.AttrUnifiedAddressing: 1, cuda.AttrMaxSharedPerBlock: 48 << 10,
		} {
			got := must.Get(e.d.DeviceGetAttribute(attr, dev))
			require.GreaterOrEqual(e, got, least, "attribute %d", attr)
		}
	}
	require.Len(e, uuids, n, "each device has a UUID of its own")

	e.is(must.Err(e.d.DeviceGet(n)), cuda.ErrInvalidDevice)
	e.is(must.Err(e.d.DeviceGetName(cuda.Device(n))), cuda.ErrInvalidDevice)
	e.is(must.Err(e.d.DevicePrimaryCtxRetain(cuda.Device(n))), cuda.ErrInvalidDevice)
}

func testCurrent(e *env) {
	c := must.Get(e.d.CtxGetCurrent())
	require.Equal(e, e.ctx, c)
	dev := must.Get(e.d.CtxGetDevice())
	require.Equal(e, e.dev, dev)

	again := must.Get(e.d.DevicePrimaryCtxRetain(e.dev))
	require.Equal(e, e.ctx, again, "a device has one primary context")
	e.noErr(e.d.DevicePrimaryCtxRelease(e.dev))
	_, active, err := e.d.DevicePrimaryCtxGetState(e.dev)
	e.noErr(err)
	require.True(e, active)

	e.noErr(e.d.CtxSetCurrent(0))
	c = must.Get(e.d.CtxGetCurrent())
	require.Zero(e, c)
	e.noErr(e.d.CtxSetCurrent(e.ctx))
	e.noErr(e.d.CtxSynchronize())
}

func testNoContext(e *env) {
	// Memory that the other thread tries to use.
	p := e.alloc(64)
	s := e.stream()
	onThread(func() {
		c := must.Get(e.d.CtxGetCurrent())
		require.Zero(e, c, "a thread begins without a context")
		_, err := e.d.CtxGetDevice()
		e.is(err, cuda.ErrInvalidContext)
		require.Contains(e, err.Error(), "With", "the remedy")
		e.is(must.Err(e.d.MemAlloc(64)), cuda.ErrInvalidContext)
		e.is(must.Err(e.d.MemHostAlloc(64, 0)), cuda.ErrInvalidContext)
		e.is(must.Err(e.d.StreamCreate(0, 0)), cuda.ErrInvalidContext)
		e.is(must.Err(e.d.EventCreate(0)), cuda.ErrInvalidContext)
		e.is(must.Err(e.d.ModuleLoadData([]byte(kernels))), cuda.ErrInvalidContext)
		_, _, err = e.d.MemGetInfo()
		e.is(err, cuda.ErrInvalidContext)
		e.is(e.d.CtxSynchronize(), cuda.ErrInvalidContext)
		e.is(must.Err(e.d.CtxPopCurrent()), cuda.ErrInvalidContext)

		// A stream and an address have a context of their own: none need be current.
		e.noErr(e.d.StreamSynchronize(s))
		must.Get(e.d.PointerGetAttribute(cuda.PointerMemoryType, p))
	})
}

func testWith(e *env) {
	wrong := errors.New("wrong")
	onThread(func() {
		err := cuda.With(e.d, e.ctx, func() error {
			dev := must.Get(e.d.CtxGetDevice())
			require.Equal(e, e.dev, dev)
			return wrong
		})
		require.ErrorIs(e, err, wrong)
		c := must.Get(e.d.CtxGetCurrent())
		require.Zero(e, c)
	})

	n := must.Get(e.d.DeviceGetCount())
	for i := range n { // the current device is as before, whichever With used
		dev := must.Get(e.d.DeviceGet(i))
		ctx := must.Get(e.d.DevicePrimaryCtxRetain(dev))
		e.noErr(cuda.With(e.d, ctx, func() error {
			got, err := e.d.CtxGetDevice()
			require.Equal(e, dev, got)
			return err
		}))
		c := must.Get(e.d.CtxGetCurrent())
		require.Equal(e, e.ctx, c)
		e.noErr(e.d.DevicePrimaryCtxRelease(dev))
	}
}

func testPeers(e *env) {
	n := must.Get(e.d.DeviceGetCount())
	if n < 2 {
		e.Skip("needs two devices")
	}
	can := must.Get(e.d.DeviceCanAccessPeer(0, 1))
	supported := must.Get(e.d.DeviceGetP2PAttribute(cuda.P2PAccessSupported, 0, 1))
	require.Equal(e, can, supported != 0)
	itself := must.Get(e.d.DeviceCanAccessPeer(0, 0))
	require.False(e, itself)
	peer := must.Get(e.d.DevicePrimaryCtxRetain(1))
	defer e.d.DevicePrimaryCtxRelease(1)
	if !can {
		e.is(e.d.CtxEnablePeerAccess(peer), cuda.ErrPeerAccessUnsupported)
		return
	}
	e.noErr(e.d.CtxEnablePeerAccess(peer))
	e.is(e.d.CtxEnablePeerAccess(peer), cuda.ErrPeerAccessAlreadyEnabled)

	// A kernel here writes there.
	store := e.kernel("store")
	var there uintptr
	e.noErr(cuda.With(e.d, peer, func() (err error) {
		there, err = e.d.MemAlloc(64)
		return err
	}))
	defer cuda.With(e.d, peer, func() error { return e.d.MemFree(there) })
	args := storeArgs{there, 77}
	e.noErr(e.d.LaunchKernel(store, &cuda.Launch{}, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	e.noErr(cuda.With(e.d, peer, func() error {
		require.Equal(e, []uint32{77}, e.words(there, 1))
		return nil
	}))

	// Copy engines do it as well, to and fro.
	here := e.alloc(64)
	s := e.stream()
	e.noErr(e.d.MemcpyPeerAsync(here, e.ctx, there, peer, 4, s))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{77}, e.words(here, 1))

	e.noErr(e.d.CtxDisablePeerAccess(peer))
	e.is(e.d.CtxDisablePeerAccess(peer), cuda.ErrPeerAccessNotEnabled)

	// A kernel of one device cannot be launched on another.
	e.noErr(cuda.With(e.d, peer, func() error {
		theirs := must.Get(e.d.StreamCreate(cuda.StreamNonBlocking, 0))
		defer e.d.StreamDestroy(theirs)
		e.is(e.d.LaunchKernel(store, &cuda.Launch{Stream: theirs}, cuda.ArgsOf(&args)), cuda.ErrInvalidHandle,
			cuda.ErrInvalidContext)
		return nil
	}))
}

// testProbes probes every feature.
func testProbes(e *env) {
	for _, f := range cuda.Features() {
		found := cuda.Probe(e.d, f)
		e.Log(found)
		require.NotEqual(e, cuda.Unknown, found.Answer, found)
		require.Equal(e, found.Answer != cuda.Yes, found.Reason != "")
	}
	require.Equal(e, cuda.No, cuda.Probe(e.d, cuda.PeerAccess, e.dev).Answer, "a device is no peer of itself")

	n := must.Get(e.d.DeviceGetCount())
	d := cuda.Describe(e.d)
	e.Logf("%+v", d)
	require.Equal(e, e.d.Name(), d.Driver)
	require.Len(e, d.Devices, n)
	require.Len(e, d.Peers, n)
	for _, dev := range d.Devices {
		require.Regexp(e, `^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`, dev.UUID)
		require.NotContains(e, []any{dev.Name, dev.PCI, dev.Major, dev.SMs, dev.Memory}, 0)
	}
}

// testThreadsAtOnce has many threads work in the same context.
func testThreadsAtOnce(e *env) {
	const threads, rounds = 8, 20
	inc := e.kernel("increment")
	p := e.alloc(256 * threads)
	e.noErr(e.d.MemsetD8(p, 0, 256*threads))
	e.noErr(e.d.CtxSynchronize())
	errs := make(chan error, threads)
	for i := range threads {
		go func() {
			errs <- cuda.With(e.d, e.ctx, func() error {
				s, err := e.d.StreamCreate(cuda.StreamNonBlocking, 0)
				if err != nil {
					return err
				}
				args := struct{ counter uintptr }{p + uintptr(256*i)}
				for range rounds {
					if err := e.d.LaunchKernel(inc, &cuda.Launch{Stream: s}, cuda.ArgsOf(&args)); err != nil {
						return err
					}
				}
				return errors.Join(e.d.StreamSynchronize(s), e.d.StreamDestroy(s))
			})
		}()
	}
	for range threads {
		e.noErr(<-errs)
	}
	for i := range threads {
		require.Equal(e, []uint32{rounds}, e.words(p+uintptr(256*i), 1))
	}
}
