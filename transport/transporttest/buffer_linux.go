package transporttest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// openBuffer maps memory that is exported by a file.
func openBuffer(m transport.Memory) (b []byte, unmap func() error, err error) {
	fd, offset, err := m.DMABuf()
	if err != nil {
		return nil, nil, err
	}
	page := uint64(unix.Getpagesize())
	lead := offset % page
	all, err := unix.Mmap(fd, int64(offset-lead), int(lead)+m.Len(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return nil, nil, err
	}
	return all[lead:][:m.Len()], func() error { return unix.Munmap(all) }, nil
}

// FileSlots is memory in a file, which plays a dma-buf of a GPU's memory. The GPU's address stands for no memory of
// this process, and for no other slots.
func FileSlots(tb testing.TB, bytes int) Slots {
	const offset = 1 << 16
	fd, err := unix.MemfdCreate("slots", unix.MFD_CLOEXEC)
	require.NoError(tb, err)
	require.NoError(tb, unix.Ftruncate(fd, int64(offset+bytes)))
	m := transport.Memory{
		Region: mem.Device(0, 0, bytes),
		DMABuf: func() (int, uint64, error) {
			d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			return d, offset, err
		},
	}
	b, unmap, err := openBuffer(m)
	require.NoError(tb, err)
	m.Region = mem.Device(0, mem.Host(b).Ptr()+^uintptr(0)>>14+1, bytes)
	tb.Cleanup(func() { require.NoError(tb, errors.Join(unmap(), unix.Close(fd))) })
	return Slots{m, b}
}
