package verbs

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// A mapper is the system's library, but its devices take files as dma-bufs: it maps a file and
// registers the mapping under the dma-buf's addresses. Software RoCE takes no dma-buf itself.
type mapper struct {
	ibverbs.Verbs
	regMRIova uintptr // ibv_reg_mr_iova(pd, address, length, iova, access)

	mu   sync.Mutex
	maps map[uintptr][]byte // by handle
}

// mrFields is the layout of ibv_mr (see internal/ibverbs).
type mrFields struct {
	_          [36]byte
	lkey, rkey uint32
}

var openMapper = sync.OnceValues(func() (*mapper, error) {
	v, err := ibverbs.Open()
	if err != nil {
		return nil, err
	}
	lib, err := dl.Open(ibverbs.Library)
	if err != nil {
		return nil, err
	}
	fn, err := lib.Sym("ibv_reg_mr_iova")
	return &mapper{Verbs: v, regMRIova: fn, maps: map[uintptr][]byte{}}, err
})

func (m *mapper) RegDMABufMR(p *ibverbs.PD, offset uint64, n int, iova uint64, fd int, access int) (*ibverbs.MR,
	error) {
	b, err := unix.Mmap(fd, 0, int(offset)+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	r := dl.Call(m.regMRIova, p.Handle, uintptr(unsafe.Pointer(&b[offset])), uintptr(n), uintptr(iova), uintptr(access))
	if r == 0 {
		return nil, errors.Join(errors.New("ibv_reg_mr_iova failed"), unix.Munmap(b))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maps[r] = b
	mr := at[mrFields](r)
	return &ibverbs.MR{Handle: r, LKey: mr.lkey, RKey: mr.rkey}, nil
}

func (m *mapper) DeregMR(mr *ibverbs.MR) error {
	if err := m.Verbs.DeregMR(mr); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.maps[mr.Handle]
	delete(m.maps, mr.Handle)
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}

// mapperOptions are the options of a rank on a device of a mapper.
func mapperOptions(tb testing.TB, cfg transport.Config) Options {
	m, err := openMapper()
	require.NoError(tb, err)
	o := deviceOptions(cfg)
	o.Verbs = m
	return o
}

func TestDevicePlaced(t *testing.T) {
	needDevice(t)
	for name, memory := range map[string]func(testing.TB, int) transporttest.Slots{"host": transporttest.HostSlots,
		"file": transporttest.FileSlots} {
		t.Run(name, func(t *testing.T) {
			transporttest.Placed(t,
				func(tb testing.TB, cfg transport.Config) transport.Transport { return New(cfg, mapperOptions(tb, cfg)) }, memory)
		})
	}
}

// Placed connections pass the suite of all transports.
func TestDevicePlacedConformance(t *testing.T) {
	needDevice(t)
	transporttest.Conformance(t, func(tb testing.TB, cfg transport.Config) transport.Transport {
		return placements["GPU"].open(cfg, mapperOptions(tb, cfg))
	}, loose)
}

// Registering a dma-buf with a device that takes none, such as software RoCE, is an error that says so.
func TestDeviceNoDMABuf(t *testing.T) {
	needDevice(t)
	tr := New(transport.Config{Limits: few}, Options{})
	defer tr.Close()
	c, err := placements["GPU"].chip(8192)
	require.NoError(t, err)
	defer c.free()
	_, err = tr.Register(c.Memory)
	require.ErrorContains(t, err, "GPU memory: ibv_reg_dmabuf_mr: ")
	require.ErrorContains(t, err, "and by its address: ibv_reg_mr: ")
	t.Log(err)
}
