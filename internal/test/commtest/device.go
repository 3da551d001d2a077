package commtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// Usable checks that memory of a device can still be allocated, written and read.
func Usable(d *gpu.Device) error {
	want := []byte("still here")
	r, err := d.Alloc(len(want))
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if err := errors.Join(d.Write(r, want), d.Read(got, r), d.Free(r)); err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("the device reads %q", got)
	}
	return nil
}

// OnHosts makes a communicator of a rank a device, each with its own Config.
func OnHosts(t testing.TB, list []*gpu.Device, config func(rank int) ringo.Config) []*ringo.Comm {
	t.Helper()
	return OnHostsWith(t, len(list), func(r int) ringo.Config {
		cfg := config(r)
		cfg.Device = list[r]
		return cfg
	})
}

// OnHostsWith makes a communicator of n ranks, each with its own Config.
func OnHostsWith(t testing.TB, n int, config func(rank int) ringo.Config) []*ringo.Comm {
	t.Helper()
	comms, errs := OpenAll(t, n, config)
	NoErrors(t, errs)
	return comms
}

// Memories is memory on each device, in which copy engines may work.
func Memories(t testing.TB, list []*gpu.Device, n int) []ringo.Region {
	t.Helper()
	all := make([]ringo.Region, len(list))
	for r, d := range list {
		all[r] = AllocMapped(t, d, make([]byte, n))
	}
	return all
}

// OnDevices makes a communicator of a rank a device.
func OnDevices(t testing.TB, list []*gpu.Device, cfg ringo.Config) []*ringo.Comm {
	t.Helper()
	cfg.Devices = list
	comms, err := ringo.OpenLocal(len(list), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, c := range comms {
			c.Close()
		}
	})
	return comms
}

// Alloc is device memory with the given content.
func Alloc(t TB, d *gpu.Device, b []byte) mem.Region {
	t.Helper()
	return allocWith(t, d, d.Alloc, b)
}

// AllocMapped is memory for windows in which copy engines work.
func AllocMapped(t TB, d *gpu.Device, b []byte) mem.Region {
	t.Helper()
	return allocWith(t, d, d.AllocMapped, b)
}

func allocWith(t TB, d *gpu.Device, alloc func(int) (mem.Region, error), b []byte) mem.Region {
	t.Helper()
	r, err := alloc(len(b))
	require.NoError(t, err)
	require.NoError(t, d.Write(r, b))
	t.Cleanup(func() { require.NoError(t, d.Free(r)) })
	return r
}

// Read is what device memory holds.
func Read(t TB, d *gpu.Device, r mem.Region) []byte {
	t.Helper()
	b := make([]byte, r.Len())
	require.NoError(t, d.Read(b, r))
	return b
}

// Stream is a new stream of a device, destroyed at the end of the test.
func Stream(t TB, d *gpu.Device) gpu.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DestroyStream(s)) })
	return s
}

// Streams are a new stream on each device.
func Streams(t TB, list []*gpu.Device) (all []gpu.Stream) {
	t.Helper()
	for _, d := range list {
		all = append(all, Stream(t, d))
	}
	return all
}

// Floats is numbers as the bytes of a buffer, little-endian.
func Floats(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
