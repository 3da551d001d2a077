package cudaemu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A driver compiles the PTX that came with it, and none that is newer. Source: PTX ISA, release notes.
func TestPTXOfDrivers(t *testing.T) {
	for _, c := range []struct{ ptx, driver int }{
		{60, 9000}, {61, 9010}, {62, 9020}, {63, 10000}, {64, 10010}, {65, 10020}, {70, 11000}, {71, 11010}, {72, 11020},
		{73, 11030}, {74, 11040}, {75, 11050}, {76, 11060}, {77, 11070}, {78, 11080}, {80, 12000}, {81, 12010}, {82, 12020},
		{83, 12030}, {84, 12040}, {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}, {91, 13010},
	} {
		v := ptx.Version{Major: c.ptx / 10, Minor: c.ptx % 10}
		require.Equal(t, v, ptxOf(c.driver), "CUDA %d", c.driver)
		if c.driver%1000 > 0 { // else the version before is not known
			require.Negative(t, compareVersions(ptxOf(c.driver-10), v), "CUDA %d", c.driver-10)
		}
	}
	require.Equal(t, ptx.Version{Major: 6, Minor: 2}, ptxOf(9090))
	require.Equal(t, ptx.Version{Major: 8, Minor: 5}, ptxOf(12060))
}

func compareVersions(a, b ptx.Version) int { return 100*(a.Major-b.Major) + a.Minor - b.Minor }

// The attributes of a device: of its shape, of the machine's Config, and of a driver of that age.
func TestDeviceFacts(t *testing.T) {
	shape := Device{Major: 8, Minor: 6, Bus: 0x1b, Memory: 1 << 20}
	shape.Shape.SMs, shape.Shape.ThreadsPerSM, shape.Shape.BlocksPerSM = 3, 1536, 16
	shape.Shape.SharedPerSM, shape.Shape.SharedPerBlock, shape.Shape.ThreadsPerBlock = 100<<10, 99<<10, 512
	facts := map[cuda.DeviceAttribute]int{
		cuda.AttrMaxThreadsPerBlock: 512, cuda.AttrMaxSharedPerBlock: 48 << 10, cuda.AttrMaxSharedPerBlockOptin: 99 << 10,
		cuda.AttrMaxSharedPerMultiprocessor: 100 << 10, cuda.AttrMaxThreadsPerMultiprocessor: 1536,
		cuda.AttrMaxBlocksPerMultiprocessor: 16,
		cuda.AttrMultiprocessorCount:        3, cuda.AttrMaxRegistersPerMultiprocessor: 65536, cuda.AttrWarpSize: 32,
		cuda.AttrClockRate: 1000000, cuda.AttrMemoryClockRate: 1000000, cuda.AttrGlobalMemoryBusWidth: 64,
		cuda.AttrL2CacheSize: 1 << 20,
		cuda.AttrPCIBusID:    0x1b, cuda.AttrPCIDeviceID: 0, cuda.AttrPCIDomainID: 0, cuda.AttrComputeCapabilityMajor: 8,
		cuda.AttrComputeCapabilityMinor: 6,
		cuda.AttrAsyncEngineCount:       2, cuda.AttrUnifiedAddressing: 1, cuda.AttrCooperativeLaunch: 1,
		cuda.AttrHostRegisterSupported:  1,
		cuda.AttrVirtualMemorySupported: boolInt(sharing), cuda.AttrPosixFDSupported: boolInt(sharing),
		cuda.AttrIPCEventSupported: boolInt(sharing),
		cuda.AttrStreamValues64:    1, cuda.AttrStreamWaitNOR: 1,
		cuda.AttrRDMASupported: 0, cuda.AttrRDMAVirtualMemorySupported: 0, cuda.AttrDMABufSupported: 0,
		cuda.AttrRDMAWritesOrdering: 0,
		cuda.AttrComputeMode:        0, cuda.AttrManagedMemory: 0, cuda.AttrComputePreemption: 0, cuda.AttrMemoryPoolsSupported: 0,
		cuda.AttrClusterLaunch: 0, cuda.AttrMulticastSupported: 0,
	}
	cards := []cuda.DeviceAttribute{cuda.AttrRDMASupported, cuda.AttrRDMAVirtualMemorySupported, cuda.AttrDMABufSupported}
	for name, c := range map[string]struct {
		cfg  Config
		with func(facts map[cuda.DeviceAttribute]int)
	}{
		"plain": {Config{}, func(map[cuda.DeviceAttribute]int) {}},
		"network cards": {Config{RDMA: true}, func(facts map[cuda.DeviceAttribute]int) {
			for _, a := range cards {
				facts[a] = boolInt(sharing)
			}
			facts[cuda.AttrRDMAWritesOrdering] = 100
		}},
		"network cards whose writes are late": {Config{RDMA: true, Flushes: true}, func(facts map[cuda.DeviceAttribute]int) {
			for _, a := range cards {
				facts[a] = boolInt(sharing)
			}
		}},
		"an old driver": {Config{RDMA: true, Flushes: true, DriverVersion: 11060}, func(map[cuda.DeviceAttribute]int) {}},
		"a very old driver": {Config{DriverVersion: 10010}, func(facts map[cuda.DeviceAttribute]int) {
			facts[cuda.AttrVirtualMemorySupported], facts[cuda.AttrPosixFDSupported] = 0, 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Shapes = []Device{shape, {}}
			m := must.Get(New(c.cfg))
			defer m.Close()
			want := map[cuda.DeviceAttribute]int{}
			for a, v := range facts {
				want[a] = v
			}
			c.with(want)
			for a, v := range want {
				got := must.Get(m.DeviceGetAttribute(a, 0))
				require.Equal(t, v, got, "attribute %d", a)
			}
			bus := must.Get(m.DeviceGetPCIBusId(0))
			require.Equal(t, "0000:1b:00.0", bus)
		})
	}

	// The defaults.
	m := must.Get(New(Config{Devices: 2}))
	defer m.Close()
	for a, v := range map[cuda.DeviceAttribute]int{
		cuda.AttrMultiprocessorCount: 8, cuda.AttrMaxThreadsPerMultiprocessor: 2048, cuda.AttrMaxBlocksPerMultiprocessor: 32,
		cuda.AttrMaxSharedPerMultiprocessor: 228 << 10,
		cuda.AttrMaxSharedPerBlockOptin:     227 << 10, cuda.AttrMaxThreadsPerBlock: 1024, cuda.AttrComputeCapabilityMajor: 9,
		cuda.AttrComputeCapabilityMinor: 0, cuda.AttrPCIBusID: 2,
	} {
		got := must.Get(m.DeviceGetAttribute(a, 1))
		require.Equal(t, v, got, "attribute %d", a)
	}
	total := must.Get(m.DeviceTotalMem(1))
	require.Equal(t, 1<<30, total)
	a := must.Get(m.DeviceGetUuid(0))
	b := must.Get(m.DeviceGetUuid(1))
	require.NotEqual(t, a, b)
	require.Equal(t, "emu:", string(b[:4]))
	require.EqualValues(t, 2, b[15])
}

// Devices that are joined by NVLink have atomics between each other; other attributes of pairs.
func TestLinkFacts(t *testing.T) {
	for link, atomics := range map[cuda.Link]int{cuda.NVLink: 1, cuda.PCIe: 0} {
		m, err := New(Config{Devices: 3, Link: func(a, b int) cuda.Link { return link },
			Peers: func(a, b int) bool { return b != 2 }})
		require.NoError(t, err)
		for a, want := range map[cuda.P2PAttribute][2]int{cuda.P2PPerformanceRank: {0, 0}, cuda.P2PAccessSupported: {1, 0},
			cuda.P2PNativeAtomics: {atomics, 0}} {
			for i, peer := range []cuda.Device{1, 2} {
				got := must.Get(m.DeviceGetP2PAttribute(a, 0, peer))
				require.Equal(t, want[i], got, "%s, attribute %d", link, a)
			}
		}
		require.NoError(t, m.Close())
	}
	m := must.Get(New(Config{Devices: 2, Link: func(a, b int) cuda.Link { return cuda.UnknownLink }}))
	defer m.Close()
	require.ErrorIs(t, must.Err(m.DeviceGetP2PAttribute(cuda.P2PNativeAtomics, 0, 1)), cuda.ErrUnknown)
}

// New refuses a wrong Config, and says why.
func TestConfigTexts(t *testing.T) {
	for want, cfg := range map[string]Config{
		"cudaemu: -1 devices: give none or more":                                                                              {Devices: -1},
		"cudaemu: 65 devices: at most 64":                                                                                     {Devices: 65},
		"cudaemu: an injected fault needs Call and Result":                                                                    {Faults: []Injection{{Call: "cuMemAlloc"}}},
		`cudaemu: a fault that hangs is of a kernel, not of "cuMemAlloc": name it as "kernel NAME"`:                           {Faults: []Injection{{Call: "cuMemAlloc", Hang: true}}},
		"cudaemu: cell {Device:1 Byte:0 Bit:0 One:false}: there are 1 devices, and bits are 0 to 7 of a byte of their memory": {Cells: []Cell{{Device: 1}}},
		"cudaemu: cell {Device:-1 Byte:0 Bit:0 One:false}: there are 1 devices, and bits are 0 to 7 of a byte of their " +
			"memory": {Cells: []Cell{{Device: -1}}},
		"cudaemu: cell {Device:0 Byte:1073741824 Bit:0 One:false}: there are 1 devices, and bits are 0 to 7 of a byte of " +
			"their memory": {Cells: []Cell{{Byte: 1 << 30}}},
		"cudaemu: cell {Device:0 Byte:-1 Bit:0 One:false}: there are 1 devices, and bits are 0 to 7 of a byte of their " +
			"memory": {Cells: []Cell{{Byte: -1}}},
		"cudaemu: cell {Device:0 Byte:0 Bit:8 One:false}: there are 1 devices, and bits are 0 to 7 of a byte of their memory": {Cells: []Cell{{Bit: 8}}},
		"cudaemu: cell {Device:0 Byte:0 Bit:-1 One:true}: there are 1 devices, and bits are 0 to 7 of a byte of their memory": {Cells: []Cell{{Bit: -1, One: true}}},
	} {
		require.EqualError(t, must.Err(New(cfg)), want)
	}
	for _, cfg := range []Config{{Devices: 64}, {Cells: []Cell{{Byte: 1<<30 - 1, Bit: 7}, {}}},
		{Faults: []Injection{{Call: "kernel k", Hang: true}}}} {
		m := must.Get(New(cfg))
		require.NoError(t, m.Close())
	}
	c := Config{Lazy: true}
	require.NoError(t, c.fill())
	require.Equal(t, []int{2_000_000, 13000}, []int{c.StallInstructions, c.DriverVersion})
	require.Equal(t, 10*time.Second, c.Stall)
	c = Config{}
	require.NoError(t, c.fill())
	require.Equal(t, 100_000, c.StallInstructions)
	c = Config{Stall: -1}
	require.NoError(t, c.fill())
	require.Zero(t, c.StallInstructions)
}

// clocked has loads that take 7 µs within a device and 50 from another; stores go at 1 GB/s.
func clocked(a, b int) Speed {
	if a == b {
		return Speed{Latency: 7 * time.Microsecond, Bandwidth: 1e9}
	}
	return Speed{Latency: 50 * time.Microsecond, Bandwidth: 1e6}
}

// A kernel takes as long as its slowest warp and as its bytes; sets, and copies from and to the host, as long as their
// bytes.
func TestSpeedOfWork(t *testing.T) {
	const text = `.version 7.0
.target sm_70
.address_size 64
.visible .entry load(.param .u64 p, .param .u64 q) {
	.reg .u64 %rd<3>;
	.reg .u32 %r<2>;
	ld.param.u64 %rd1, [p];
	ld.param.u64 %rd2, [q];
	ld.global.u32 %r1, [%rd1];
	st.global.u32 [%rd2], %r1;
	ret;
}`
	m := must.Get(New(Config{Devices: 2, Plain: true, Speed: clocked}))
	defer m.Close()
	var near, far uintptr
	var ctx [2]cuda.Context
	for i := range ctx {
		ctx[i] = must.Get(m.DevicePrimaryCtxRetain(cuda.Device(i)))
	}
	require.NoError(t, cuda.With(m, ctx[1], func() (err error) { far, err = m.MemAlloc(4096); return err }))
	require.NoError(t, cuda.With(m, ctx[0], func() error {
		require.NoError(t, m.CtxEnablePeerAccess(ctx[1]))
		near, _ = m.MemAlloc(4096)
		host, _ := m.MemHostAlloc(4096, 0)
		s, _ := m.StreamCreate(cuda.StreamNonBlocking, 0)
		start, _ := m.EventCreate(0)
		end, _ := m.EventCreate(0)
		mod := must.Get(m.ModuleLoadData([]byte(text)))
		f := must.Get(m.ModuleGetFunction(mod, "load"))
		timed := func(work func() error) float64 {
			require.NoError(t, m.EventRecord(start, s))
			require.NoError(t, work())
			require.NoError(t, m.EventRecord(end, s))
			require.NoError(t, m.StreamSynchronize(s))
			ms := must.Get(m.EventElapsedTime(start, end))
			return float64(ms) * 1000
		}
		kernel := func(blocks, threads uint32, from, to uintptr) func() error {
			args := struct{ p, q uintptr }{from, to}
			return func() error {
				return m.LaunchKernel(f, &cuda.Launch{Grid: cuda.Dim3{X: blocks}, Block: cuda.Dim3{X: threads}, Stream: s},
					cuda.ArgsOf(&args))
			}
		}
		for _, c := range []struct {
			name string
			us   float64
			work func() error
		}{
			{"set", 2*1 + 7 + 2, func() error { return m.MemsetD8Async(near, 1, 1000, s) }},
			{"to the host", 4000 + 50 + 2, func() error { return m.MemcpyAsync(host, near, 4000, s) }},
			{"from the host", 4000 + 50 + 2, func() error { return m.MemcpyAsync(near, host, 4000, s) }},
			{"within", 8 + 7 + 2, func() error { return m.MemcpyAsync(near+4, near+8, 4000, s) }},
			{"load near", 7 + 2, kernel(1, 1, near, near)},
			{"load far", 50 + 2, kernel(1, 1, far, near)},
			{"store far", 7 + 2, kernel(1, 1, near, far)},
			{"store far, many bytes", 64*4 + 2, kernel(1, 64, near, far)},
			{"blocks beside each other", 7 + 2, kernel(8, 1, near, near)},
		} {
			require.InDelta(t, c.us, timed(c.work), 0.2, c.name)
		}
		return nil
	}))
}
