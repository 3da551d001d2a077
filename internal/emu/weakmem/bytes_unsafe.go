package weakmem

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// get is the little-endian integer of size bytes at the beginning of p.
func get(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// put stores the low bytes of v at the beginning of p.
func put(p []byte, size int, v uint64) {
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(v))
	default:
		binary.LittleEndian.PutUint64(p, v)
	}
}

// strongGet is get for memory that others write: it never tears, and what is
// read after it is read after it.
func strongGet(p []byte, size int) uint64 {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 8 && uintptr(at)%8 == 0:
		return atomic.LoadUint64((*uint64)(at))
	case size == 4 && uintptr(at)%4 == 0:
		return uint64(atomic.LoadUint32((*uint32)(at)))
	}
	return get(p, size)
}

// strongPut is put for memory that others read: it never tears, and what was
// written before is seen before.
func strongPut(p []byte, size int, v uint64) {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 8 && uintptr(at)%8 == 0:
		atomic.StoreUint64((*uint64)(at), v)
	case size == 4 && uintptr(at)%4 == 0:
		atomic.StoreUint32((*uint32)(at), uint32(v))
	default:
		put(p, size, v)
	}
}

// replace stores v if old is there, at once if the memory is aligned.
func replace(p []byte, size int, old, v uint64) bool {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 8 && uintptr(at)%8 == 0:
		return atomic.CompareAndSwapUint64((*uint64)(at), old, v)
	case size == 4 && uintptr(at)%4 == 0:
		return atomic.CompareAndSwapUint32((*uint32)(at), uint32(old), uint32(v))
	case size == 2 && uintptr(at)%2 == 0: // within its aligned word, which the mapping holds too
		shift := uintptr(at) % 4 * 8
		word := (*uint32)(unsafe.Add(at, -int(uintptr(at)%4)))
		w := atomic.LoadUint32(word)
		return uint64(w>>shift&0xffff) == old &&
			atomic.CompareAndSwapUint32(word, w, w&^(0xffff<<shift)|uint32(v)&0xffff<<shift)
	}
	if get(p, size) != old {
		return false
	}
	put(p, size, v)
	return true
}
