package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is a Driver that only answers questions.
type machine struct {
	Driver
	version    int
	attributes map[DeviceAttribute]int // of all devices
	peers      [][]bool
	fails      map[string]Result // by method
}

func (m *machine) fail(call string) error {
	if r := m.fails[call]; r != 0 {
		return &Error{Call: "cu" + call, Result: r, Device: -1}
	}
	return nil
}

func (m *machine) Name() string                   { return "machine" }
func (m *machine) DriverGetVersion() (int, error) { return m.version, m.fail("DriverGetVersion") }
func (m *machine) DeviceGetCount() (int, error)   { return len(m.peers), m.fail("DeviceGetCount") }
func (m *machine) DeviceGet(i int) (Device, error) {
	return Device(i), m.fail("DeviceGet")
}
func (m *machine) DeviceGetName(Device) (string, error) { return "Test", m.fail("DeviceGetName") }
func (m *machine) DeviceGetUuid(d Device) ([16]byte, error) {
	return [16]byte{0xab, 15: byte(d)}, m.fail("DeviceGetUuid")
}
func (m *machine) DeviceGetPCIBusId(Device) (string, error) {
	return "0000:1b:00.0", m.fail("DeviceGetPCIBusId")
}
func (m *machine) DeviceTotalMem(Device) (int, error) { return 1 << 30, m.fail("DeviceTotalMem") }
func (m *machine) DeviceGetAttribute(a DeviceAttribute, _ Device) (int, error) {
	return m.attributes[a], m.fail("DeviceGetAttribute")
}
func (m *machine) DeviceCanAccessPeer(d, p Device) (bool, error) {
	return m.peers[d][p], m.fail("DeviceCanAccessPeer")
}
func (m *machine) DeviceGetP2PAttribute(a P2PAttribute, d, p Device) (int, error) {
	return map[P2PAttribute]int{P2PPerformanceRank: 1, P2PNativeAtomics: 1}[a], m.fail("DeviceGetP2PAttribute")
}
func (m *machine) DevicePrimaryCtxRetain(Device) (Context, error) {
	return 1, m.fail("DevicePrimaryCtxRetain")
}
func (m *machine) DevicePrimaryCtxRelease(Device) error { return nil }
func (m *machine) CtxGetCurrent() (Context, error)      { return 0, nil }
func (m *machine) CtxPushCurrent(Context) error         { return nil }
func (m *machine) CtxPopCurrent() (Context, error)      { return 1, nil }
func (m *machine) MemAlloc(int) (uintptr, error)        { return 256, m.fail("MemAlloc") }
func (m *machine) MemFree(uintptr) error                { return nil }
func (m *machine) IpcGetMemHandle(uintptr) (IPCHandle, error) {
	return IPCHandle{}, m.fail("IpcGetMemHandle")
}

func twoDevices(version int) *machine {
	return &machine{
		version: version,
		attributes: map[DeviceAttribute]int{
			AttrVirtualMemorySupported: 1, AttrPosixFDSupported: 1, AttrCooperativeLaunch: 1,
			AttrComputeCapabilityMajor: 9, AttrMultiprocessorCount: 132, AttrComputeMode: computeModeExclusive,
		},
		peers: [][]bool{{false, true}, {true, false}},
		fails: map[string]Result{},
	}
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name    string
		feature Feature
		version int
		devices []Device
		fails   string
		with    Result
		want    Answer
		reason  string
	}{
		{"works", MemoryFDs, 13000, nil, "", 0, Yes, ""},
		{"works on one", CooperativeLaunch, 13000, []Device{1}, "", 0, Yes, ""},
		{"device lacks it", ClusterLaunch, 13000, nil, "", 0, No, "device 0 has no clusters"},
		{"driver is too old", StreamValues, 11060, nil, "", 0, No, "the driver is of CUDA 11.6, it is there since 11.7"},
		{"driver does not know", MemoryFDs, 13000, nil, "DeviceGetAttribute", ErrInvalidValue, No, "device 0"},
		{"could not tell", MemoryFDs, 13000, nil, "DeviceGetAttribute", ErrUnknown, Unknown, "CUDA_ERROR_UNKNOWN"},
		{"no version", MemoryFDs, 13000, nil, "DriverGetVersion", ErrUnknown, Unknown, "cuDriverGetVersion"},
		{"no devices to ask", MemoryFDs, 13000, nil, "DeviceGetCount", ErrUnknown, Unknown, "cuDeviceGetCount"},
		{"peers", PeerAccess, 13000, nil, "", 0, Yes, ""},
		{"peers, one device", PeerAccess, 13000, []Device{0}, "", 0, No, "there is one device"},
		{"peers could not tell", PeerAtomics, 13000, nil, "DeviceGetP2PAttribute", ErrUnknown, Unknown, ""},
		{"IPC", IPCHandles, 13000, nil, "", 0, Yes, ""},
		{"no IPC", IPCHandles, 13000, nil, "IpcGetMemHandle", ErrNotSupported, No, "device 0"},
		{"IPC could not tell", IPCHandles, 13000, nil, "MemAlloc", ErrOutOfMemory, Unknown, "OUT_OF_MEMORY"},
		{"user objects", UserObjects, 11030, nil, "", 0, Yes, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := twoDevices(c.version)
			if c.fails != "" {
				m.fails[c.fails] = c.with
			}
			f := Probe(m, c.feature, c.devices...)
			require.Equal(t, c.want, f.Answer, f)
			require.Contains(t, f.Reason, c.reason)
			require.Equal(t, c.want == Yes, f.Reason == "")
			require.Contains(t, f.String(), c.feature.Name+": "+c.want.String())
			require.Equal(t, c.feature.Since, f.Since)
		})
	}
	m := twoDevices(13000)
	m.peers[1][0] = false
	require.Equal(t, "devices 1 and 0 cannot reach each other's memory", Probe(m, PeerAccess).Reason)
	require.Len(t, Features(), 11)
}

func TestDescribe(t *testing.T) {
	m := twoDevices(12080)
	got := Describe(m)
	require.Equal(t, "12.8", got.VersionString())
	require.Equal(t, DeviceDescription{
		Ordinal: 1, Name: "Test", UUID: "GPU-ab000000-0000-0000-0000-000000000001", PCI: "0000:1b:00.0",
		Major: 9, SMs: 132, Memory: 1 << 30,
	}, got.Devices[1])
	require.Equal(t, [][]Peer{{{}, {true, 1, NVLink}}, {{true, 1, NVLink}, {}}}, got.Peers)
	require.Len(t, got.Problems, 2)
	require.Contains(t, got.Problems[0], "one process at a time")

	// A question that fails does not lose the other answers.
	for _, call := range []string{"DriverGetVersion", "DeviceGet", "DeviceGetName", "DeviceGetUuid", "DeviceGetPCIBusId",
		"DeviceTotalMem", "DeviceGetAttribute", "DeviceCanAccessPeer", "DeviceGetP2PAttribute"} {
		m := twoDevices(12080)
		m.fails[call] = ErrUnknown
		got := Describe(m)
		require.Len(t, got.Devices, 2, call)
		require.Len(t, got.Peers, 2, call)
		require.Contains(t, got.Problems[0], "cu"+call)
	}
	m.fails["DeviceGetCount"] = ErrUnknown
	got = Describe(m)
	require.Equal(t, 12080, got.Version)
	require.Len(t, got.Problems, 1)
}
