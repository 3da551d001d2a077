package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu" // for -device emu
	"github.com/ringo-go/ringo/internal/nccl"
)

// A machine is some GPUs, a stream and memory on each, and a library that reduces. One thread
// drives all.
type machine struct {
	gpus    *gpu.Machine
	devices []*gpu.Device
	streams []gpu.Stream
	in, out []ringo.Region
	lib     library
}

// A library carries out all-reduces of bfloat16.
type library interface {
	// together carries out the calls that f makes as one group.
	together(f func() error) error
	// allReduce queues an all-reduce on a rank's stream, from in to out.
	allReduce(rank, count int) error
	counters() string
	close() error
}

const most = 100_000 // elements

func openMachine(o *options) (m *machine, err error) {
	runtime.LockOSThread()
	m = new(machine)
	options := gpu.Options{}
	if o.device == "emu" {
		options = gpu.Options{Emulate: o.gpus, Unchecked: true}
	}
	if m.gpus, err = gpu.Open(options); err != nil {
		return nil, err
	}
	ones := bytes.Repeat([]byte{0x80, 0x3f}, most) // 1 in bfloat16
	for i := range o.gpus {
		d, err := m.gpus.Device(i)
		if err != nil {
			return nil, err
		}
		s, err := d.NewStream()
		if err != nil {
			return nil, err
		}
		in, err := d.Alloc(2 * most)
		if err != nil {
			return nil, err
		}
		out, err := d.Alloc(2 * most)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(d.Write(in, ones), d.Write(out, make([]byte, 2*most))); err != nil {
			return nil, err
		}
		m.devices, m.streams = append(m.devices, d), append(m.streams, s)
		m.in, m.out = append(m.in, in), append(m.out, out)
	}
	if o.child == "nccl" {
		m.lib, err = openNCCL(m, o.library)
	} else {
		m.lib, err = openRingo(m, o)
	}
	return m, err
}

func (m *machine) counters() string { return m.lib.counters() }

func (m *machine) close() error {
	errs := []error{m.lib.close()}
	for i, d := range m.devices {
		errs = append(errs, d.DestroyStream(m.streams[i]), d.Free(m.in[i]), d.Free(m.out[i]))
	}
	return errors.Join(append(errs, m.gpus.Close())...)
}

// everywhere queues an all-reduce on every rank.
func (m *machine) everywhere(count int) error {
	return m.lib.together(func() error {
		for r := range m.devices {
			if err := m.lib.allReduce(r, count); err != nil {
				return err
			}
		}
		return nil
	})
}

// leak is the program of NVIDIA/nccl #1251.
func (m *machine) leak(calls int, out io.Writer) error {
	for range 2 {
		if err := m.everywhere(most); err != nil {
			return err
		}
	}
	unused, err := m.capture(func() error { return m.everywhere(most) })
	if err != nil {
		return err
	}
	for i := range calls {
		if i%1000 == 0 {
			fmt.Fprintf(out, "at call %d of %d\n", i, calls)
		}
		if err := m.everywhere(49_000); err != nil {
			return err
		}
	}
	if err := m.verify(most); err != nil {
		return err
	}
	var errs []error
	for _, g := range unused {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

// capture captures the work that f queues on all streams, as a graph a device.
func (m *machine) capture(f func() error) ([]*gpu.Graph, error) {
	graphs := make([]*gpu.Graph, len(m.devices))
	nested := f
	for i, d := range m.devices {
		inner := nested
		nested = func() (err error) {
			graphs[i], err = d.Capture(m.streams[i], inner)
			return err
		}
	}
	return graphs, nested()
}

// group makes all calls in one group.
func (m *machine) group(calls int, out io.Writer) error {
	const count = 4
	fmt.Fprintf(out, "at the group of %d\n", calls)
	err := m.lib.together(func() error {
		for range calls {
			for r := range m.devices {
				if err := m.lib.allReduce(r, count); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.verify(count)
}

// verify waits for all devices, and compares the first elements of the results with the
// number of ranks.
func (m *machine) verify(count int) error {
	// An integer of at most 256 is exact in bfloat16, which is the upper half of a float32.
	want := make([]byte, 2*count)
	for i := range count {
		bits := bfloat16(len(m.devices))
		want[2*i], want[2*i+1] = byte(bits), byte(bits>>8)
	}
	got := make([]byte, 2*count)
	for r, d := range m.devices {
		if err := d.Synchronize(m.streams[r]); err != nil {
			return err
		}
		if err := d.Read(got, m.out[r]); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("rank %d: the result is wrong", r)
		}
	}
	return nil
}

// overRingo is the library Ringo.
type overRingo struct {
	m     *machine
	comms []*ringo.Comm
	group *ringo.Group // while calls are collected
}

func openRingo(m *machine, o *options) (library, error) {
	comms, err := ringo.OpenLocal(len(m.devices), ringo.Config{Devices: m.devices, Timeout: o.limit})
	return &overRingo{m: m, comms: comms, group: ringo.NewGroup()}, err
}

func (l *overRingo) together(f func() error) error {
	if err := f(); err != nil {
		return err
	}
	return l.group.Run()
}

func (l *overRingo) allReduce(rank, count int) error {
	l.group.Add(l.comms[rank], &ringo.Call{
		Kind: ringo.KindAllReduce, In: l.m.in[rank].Slice(0, 2*count), Out: l.m.out[rank].Slice(0, 2*count),
		Count: count, Type: ringo.BFloat16, Stream: l.m.streams[rank],
	})
	return nil
}

func (l *overRingo) counters() string { return "" }

func (l *overRingo) close() error {
	errs := make([]error, len(l.comms))
	done := make(chan bool)
	for i, c := range l.comms {
		go func() {
			errs[i] = c.Close()
			done <- true
		}()
	}
	for range l.comms {
		<-done
	}
	return errors.Join(errs...)
}

// overNCCL is the library NCCL.
type overNCCL struct {
	m     *machine
	lib   *nccl.Library
	comms []nccl.Comm
}

func openNCCL(m *machine, file string) (library, error) {
	lib, err := nccl.Open(file)
	if err != nil {
		return nil, err
	}
	devices := make([]int, len(m.devices))
	for i := range devices {
		devices[i] = i
	}
	comms, err := lib.InitAll(devices...)
	return &overNCCL{m: m, lib: lib, comms: comms}, err
}

func (l *overNCCL) together(f func() error) error { return l.lib.Together(f) }

func (l *overNCCL) allReduce(rank, count int) error {
	const sum = 0
	return l.m.devices[rank].With(func() error {
		return l.lib.Call("ncclAllReduce", l.m.in[rank].Ptr(), l.m.out[rank].Ptr(), uintptr(count),
			uintptr(ringo.BFloat16.NCCL()), sum,
			uintptr(l.comms[rank]), uintptr(l.m.streams[rank]))
	})
}

func (l *overNCCL) counters() string {
	v, err := l.lib.Version()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; NCCL %d.%d.%d", v/10000, v/100%100, v%100)
}

func (l *overNCCL) close() error {
	var errs []error
	for _, c := range l.comms {
		errs = append(errs, l.lib.Call("ncclCommDestroy", uintptr(c)))
	}
	return errors.Join(errs...)
}

// bfloat16 is a small integer as bfloat16.
func bfloat16(n int) uint32 { return math.Float32bits(float32(n)) >> 16 }
