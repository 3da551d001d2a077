package rdma

import (
	"errors"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/ibverbs"
)

// A Mapper is the system's library, but its devices take files as dma-bufs: it maps a file and
// registers the mapping under the dma-buf's addresses. Software RoCE takes no dma-buf itself.
type Mapper struct {
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

// OpenMapper opens the library, once.
var OpenMapper = sync.OnceValues(func() (*Mapper, error) {
	v, err := ibverbs.Open()
	if err != nil {
		return nil, err
	}
	lib, err := dl.Open(ibverbs.Library)
	if err != nil {
		return nil, err
	}
	fn, err := lib.Sym("ibv_reg_mr_iova")
	return &Mapper{Verbs: v, regMRIova: fn, maps: map[uintptr][]byte{}}, err
})

func (m *Mapper) RegDMABufMR(p *ibverbs.PD, offset uint64, n int, iova uint64, fd int, access int) (*ibverbs.MR,
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
	mr := At[mrFields](r)
	return &ibverbs.MR{Handle: r, LKey: mr.lkey, RKey: mr.rkey}, nil
}

func (m *Mapper) DeregMR(mr *ibverbs.MR) error {
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
