package cudac

import (
	"bytes"
	"errors"
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/fatbin"
)

// memory keeps values alive whose addresses programs have.
type memory struct {
	sync.Mutex
	nodes  map[cuda.Stream][]cuda.GraphNode // of StreamGetCaptureInfo, until the next for the stream
	bodies []*cuda.Graph                    // of conditional nodes
}

func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// at is a pointer to the value at an address.
func at[T any](p uintptr) *T { return (*T)(pointer(p)) }

// list is n values at an address.
func list[T any](p, n uintptr) []T {
	if n == 0 || p == 0 {
		return nil
	}
	return unsafe.Slice((*T)(pointer(p)), n)
}

// put stores the result of a call, unless the program wants none.
func put[T any](p uintptr, v T, err error) error {
	if err == nil && p != 0 {
		*(*T)(pointer(p)) = v
	}
	return err
}

// text is the C string at an address.
func text(p uintptr) string {
	n := uintptr(0)
	for *at[byte](p + n) != 0 {
		n++
	}
	return string(list[byte](p, n))
}

// The first words of images that are no text: the wrapper in which compilers put a fat binary's address, and ELF.
const (
	wrapperMark = 0x466243b1
	elfMark     = 0x464c457f
	elfHeader   = 64 // bytes
)

// load loads a module: text, a fat binary or its wrapper.
func (l *Library) load(p uintptr) (cuda.Module, error) {
	image, err := l.imageAt(p)
	if err != nil {
		return 0, err
	}
	return l.loadImage(image)
}

// loadImage loads an image. It prints the error, as most programs print only its number.
func (l *Library) loadImage(image []byte) (cuda.Module, error) {
	m, err := l.d.ModuleLoadData(image)
	if err != nil {
		l.say("emulated GPU: " + err.Error())
	}
	return m, err
}

// imageAt is a copy of the image at an address.
func (l *Library) imageAt(p uintptr) ([]byte, error) {
	if p == 0 {
		return nil, cuda.ErrInvalidValue
	}
	if *at[uint32](p) == wrapperMark {
		p = *word(p + 8)
	}
	n, err := fatbin.Size(list[byte](p, fatbin.HeaderSize))
	switch {
	case err == nil:
		return bytes.Clone(list[byte](p, uintptr(n))), nil
	case !errors.Is(err, fatbin.ErrNone):
		l.say("emulated GPU: " + err.Error())
		return nil, cuda.ErrInvalidImage
	case *at[uint32](p) == elfMark:
		return bytes.Clone(list[byte](p, elfHeader)), nil
	}
	return []byte(text(p)), nil
}

// putText stores a C string in room for n bytes.
func putText(p, n uintptr, s string) {
	if p == 0 || n == 0 {
		return
	}
	to := list[byte](p, n)
	to[copy(to[:n-1], s)] = 0
}

// nodesOf is the address of nodes, which stays good until the next call for the stream.
func (l *Library) nodesOf(s cuda.Stream, nodes []cuda.GraphNode) uintptr {
	l.kept.Lock()
	defer l.kept.Unlock()
	if l.kept.nodes == nil {
		l.kept.nodes = map[cuda.Stream][]cuda.GraphNode{}
	}
	l.kept.nodes[s] = nodes
	return uintptr(unsafe.Pointer(unsafe.SliceData(nodes)))
}

// CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, and all of CU_MEM_HANDLE_TYPE_.
const (
	pinned     = 1
	onDevice   = 1
	allHandles = 15
)

// fits reports whether memory of a device is asked for, and a handle that there is.
func (p *memProp) fits() bool {
	return p.kind == pinned && p.location == onDevice && p.handleTypes&^allHandles == 0
}

// bodyOf is the address of a variable with a graph, which stays good.
func (l *Library) bodyOf(g cuda.Graph) uintptr {
	l.kept.Lock()
	defer l.kept.Unlock()
	l.kept.bodies = append(l.kept.bodies, &g)
	return uintptr(unsafe.Pointer(&g))
}

// The structs of cuda.h that are read or written here. Fields that are not used have no name.
type (
	memProp struct { // CUmemAllocationProp
		kind, handleTypes    int32
		location, locationID int32
		_                    uintptr
		_, rdma              uint8
		_                    uint16
		_                    [4]uint8
	}
	memAccess struct { // CUmemAccessDesc
		location, locationID int32
		_                    int32
	}
	launchConfig struct { // CUlaunchConfig
		grid, block cuda.Dim3
		shared      uint32
		stream      cuda.Stream
		attrs       uintptr
		numAttrs    uint32
	}
	launchAttribute struct { // CUlaunchAttribute
		id, _ uint32
		value [16]uint32
	}
	updateInfo struct { // CUgraphExecUpdateResultInfo
		result     uint32
		node, from cuda.GraphNode
	}
	nodeParams struct { // CUgraphNodeParams of a conditional node
		kind      uint32
		_         [3]uint32
		condition cuda.Condition
		how       cuda.ConditionType
		_         uint32
		bodies    uintptr
		ctx       cuda.Context
	}
)
