package gpupaths

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A fake is a driver of one device that maps host memory where the host has it.
type fake struct {
	cuda.Driver // nil: a call of any other method panics
}

func (*fake) Name() string                                               { return "fake" }
func (*fake) DeviceGetCount() (int, error)                               { return 1, nil }
func (*fake) DeviceGet(i int) (cuda.Device, error)                       { return cuda.Device(i), nil }
func (*fake) DevicePrimaryCtxRetain(cuda.Device) (cuda.Context, error)   { return 1, nil }
func (*fake) DevicePrimaryCtxRelease(cuda.Device) error                  { return nil }
func (*fake) CtxGetCurrent() (cuda.Context, error)                       { return 1, nil }
func (*fake) MemHostRegister(uintptr, int, cuda.HostRegisterFlags) error { return nil }
func (*fake) MemHostUnregister(uintptr) error                            { return nil }
func (*fake) MemHostGetDevicePointer(p uintptr) (uintptr, error)         { return p, nil }

func (*fake) ThreadExchangeStreamCaptureMode(m cuda.CaptureMode) (cuda.CaptureMode, error) {
	return m, nil
}

func (*fake) DeviceGetAttribute(a cuda.DeviceAttribute, _ cuda.Device) (int, error) {
	return map[cuda.DeviceAttribute]int{cuda.AttrMultiprocessorCount: 16, cuda.AttrMaxThreadsPerMultiprocessor: 2048}[a],
		nil
}

func (*fake) DeviceGetPCIBusId(d cuda.Device) (string, error) {
	if d != 0 {
		return "", cuda.ErrInvalidDevice
	}
	return "0000:1F:00.0", nil
}

// fakeDevice is the device of a fake.
func fakeDevice(t *testing.T) *gpu.Device {
	m, err := gpu.Of(new(fake))
	require.NoError(t, err)
	d, err := m.Device(0)
	require.NoError(t, err)
	return d
}
