package weakmem

import (
	"encoding/binary"
	"fmt"
)

// What follows is done by the driver, a copy engine or the host, at one moment.
// It happens after the given Clock, and the Clock returned is after it. Errors
// are *Fault with the device -1 and no kernel.

// Copy copies n bytes from src to dst.
func (m *Memory) Copy(dst, src uint64, n int, after Clock) (Clock, error) {
	d, err := m.bytes(dst, n)
	if err != nil {
		return after, err
	}
	s, err := m.bytes(src, n)
	if err != nil {
		return after, err
	}
	copy(d, s)
	return after, nil
}

// Set fills n bytes with repetitions of a pattern of 1, 2, 4 or 8 bytes.
func (m *Memory) Set(dst uint64, pattern []byte, n int, after Clock) (Clock, error) {
	d, err := m.bytes(dst, n)
	if err != nil {
		return after, err
	}
	for i := copy(d, pattern); i < n; {
		i += copy(d[i:], d[:i])
	}
	return after, nil
}

// Read copies to the host's own memory, which is not mapped here.
func (m *Memory) Read(dst []byte, src uint64, after Clock) (Clock, error) {
	s, err := m.bytes(src, len(dst))
	if err != nil {
		return after, err
	}
	copy(dst, s)
	return after, nil
}

// Write copies from the host's own memory.
func (m *Memory) Write(dst uint64, src []byte, after Clock) (Clock, error) {
	d, err := m.bytes(dst, len(src))
	if err != nil {
		return after, err
	}
	copy(d, src)
	return after, nil
}

// StoreRelease is a store of 4 or 8 bytes that releases at system scope, as
// cuStreamWriteValue makes it.
func (m *Memory) StoreRelease(dst uint64, v uint64, size int, after Clock) (Clock, error) {
	d, err := m.bytes(dst, size)
	if err != nil {
		return after, err
	}
	switch size {
	case 4:
		binary.LittleEndian.PutUint32(d, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(d, v)
	}
	return after, nil
}

// LoadAcquire is a load of 4 or 8 bytes that acquires at system scope, as
// cuStreamWaitValue makes it again and again. The Clock is after what it read.
func (m *Memory) LoadAcquire(src uint64, size int, after Clock) (uint64, Clock, error) {
	s, err := m.bytes(src, size)
	if err != nil {
		return 0, after, err
	}
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(s)), after, nil
	}
	return binary.LittleEndian.Uint64(s), after, nil
}

// Host is what the host may know to have happened: what HostSaw was told and
// all that kernels released at system scope. What the host starts is after it.
func (m *Memory) Host() Clock { return m.host }

// HostSaw says that the host waited for c.
func (m *Memory) HostSaw(c Clock) { m.host = Join(m.host, c) }

// bytes returns the memory at [addr, addr+n).
func (m *Memory) bytes(addr uint64, n int) ([]byte, error) {
	s := m.spans.find(addr)
	if s == nil || addr+uint64(n) > s.end() {
		return nil, &Fault{Kind: OutOfBounds, Device: -1, Addr: addr, Size: n, Count: 1, Detail: fmt.Sprintf("%d bytes", n)}
	}
	return s.Data[addr-s.Addr:][:n], nil
}
