package cuda

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// noting is a driver that notes calls, of which one may fail.
type noting struct {
	Driver
	calls   []string
	current Context
	failing string
}

var errNoting = errors.New("noted")

func (d *noting) note(name string, args ...any) error {
	d.calls = append(d.calls, fmt.Sprint(name, args))
	if name == d.failing {
		return errNoting
	}
	return nil
}

func (d *noting) CtxGetCurrent() (Context, error) { return d.current, nil }
func (d *noting) CtxPushCurrent(c Context) error  { return d.note("push", c) }
func (d *noting) CtxPopCurrent() (Context, error) { return 0, d.note("pop") }
func (d *noting) MemcpyHtoD(dst uintptr, src []byte) error {
	return d.note("copy", dst, len(src))
}
func (d *noting) EventRecord(e Event, s Stream) error {
	return d.note("record", uintptr(e), uintptr(s))
}
func (d *noting) StreamWaitEvent(s Stream, e Event, flags uint32) error {
	return d.note("follow", uintptr(s), uintptr(e), flags)
}
func (d *noting) StreamSynchronize(s Stream) error { return d.note("wait", s) }
func (d *noting) ThreadExchangeStreamCaptureMode(mode CaptureMode) (CaptureMode, error) {
	return CaptureGlobal, d.note("mode", mode)
}
func (d *noting) DeviceGetAttribute(a DeviceAttribute, _ Device) (int, error) {
	return map[DeviceAttribute]int{AttrComputeCapabilityMajor: 9, AttrComputeCapabilityMinor: 3}[a], d.note("attribute", a)
}

// With and its kin make these calls in this order; a failure is returned, and the steps before it are undone.
func TestWith(t *testing.T) {
	push, pop := "push[7]", "pop[]"
	relaxed, back := fmt.Sprint("mode", []any{CaptureRelaxed}), fmt.Sprint("mode", []any{CaptureGlobal})
	write, wait := "copy[5 3]", fmt.Sprint("wait", []any{StreamLegacy})
	for name, test := range map[string]struct {
		current Context
		failing string
		do      func(d *noting, f func() error) error
		calls   []string
	}{
		"another is current": {0, "", func(d *noting, f func() error) error { return With(d, 7, f) },
			[]string{push, "f[]", pop}},
		"it is current": {7, "", func(d *noting, f func() error) error { return With(d, 7, f) }, []string{"f[]"}},
		"no push":       {0, "push", func(d *noting, f func() error) error { return With(d, 7, f) }, []string{push}},
		"no pop": {0, "pop", func(d *noting, f func() error) error { return With(d, 7, f) },
			[]string{push, "f[]", pop}},
		"f fails": {0, "f", func(d *noting, f func() error) error { return With(d, 7, f) },
			[]string{push, "f[]", pop}},
		"quietly": {7, "", func(d *noting, f func() error) error { return Quietly(d, 7, f) },
			[]string{relaxed, "f[]", back}},
		"quietly, f fails": {7, "f", func(d *noting, f func() error) error { return Quietly(d, 7, f) },
			[]string{relaxed, "f[]", back}},
		"quietly, no mode": {7, "mode", func(d *noting, f func() error) error { return Quietly(d, 7, f) },
			[]string{relaxed}},
		"write": {7, "", func(d *noting, _ func() error) error { return Write(d, 5, make([]byte, 3)) },
			[]string{write, wait}},
		"write, no copy": {7, "copy", func(d *noting, _ func() error) error { return Write(d, 5, make([]byte, 3)) },
			[]string{write}},
		"write, no wait": {7, "wait", func(d *noting, _ func() error) error { return Write(d, 5, make([]byte, 3)) },
			[]string{write, wait}},
		"after": {7, "", func(d *noting, _ func() error) error { return After(d, 1, 2, 3) },
			[]string{"record[3 2]", "follow[1 3 0]"}},
		"after, no record": {7, "record", func(d *noting, _ func() error) error { return After(d, 1, 2, 3) },
			[]string{"record[3 2]"}},
		"after, no wait": {7, "follow", func(d *noting, _ func() error) error { return After(d, 1, 2, 3) },
			[]string{"record[3 2]", "follow[1 3 0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &noting{current: test.current, failing: test.failing}
			err := test.do(d, func() error { return d.note("f") })
			require.Equal(t, test.calls, d.calls)
			require.Equal(t, test.failing != "", errors.Is(err, errNoting))
		})
	}
}

func TestCapability(t *testing.T) {
	d := &noting{}
	x := must.Get(Capability(d, 0))
	require.Equal(t, 93, x)
	d.failing = "attribute"
	require.ErrorIs(t, must.Err(Capability(d, 0)), errNoting)
}

// A failed call on memory stays failed, and its error tells the arguments.
func TestCallsOfMemoryStayFailed(t *testing.T) {
	for _, f := range []func(d *libcuda, err error) error{
		func(d *libcuda, err error) error { return d.at(16, err) },
		func(d *libcuda, err error) error { return d.set(16, 4, err) },
		func(d *libcuda, err error) error { return d.copied(16, 32, 4, err) },
	} {
		require.NoError(t, f(&libcuda{}, nil))
		err := f(&libcuda{}, &Error{Call: "cuMemX", Result: ErrOutOfMemory, Device: -1})
		require.ErrorIs(t, err, ErrOutOfMemory)
		require.ErrorContains(t, err, "0x10")
	}
}
