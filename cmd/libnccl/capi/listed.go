package capi

import (
	"encoding/binary"
	"slices"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// listed is a table of windows in the GPU's memory, in which NCCL's kernels look up a window by an address. It has 32
// entries of an address, a length and a record, and the address of the next table.
type listed struct {
	at      uintptr
	windows [listedWindows]*window
}

const (
	listedWindows = 32
	entryBytes    = 24
	tableBytes    = listedWindows*entryBytes + 8
)

// table is the first table, 0 if there is no room.
func (t *records) table(d *gpu.Device) (uintptr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.tables) == 0 {
		if err := t.addTable(d); err != nil || len(t.tables) == 0 {
			return 0, err
		}
	}
	return t.tables[0].at, nil
}

// addTable adds an empty table, where there is room. mu is held.
func (t *records) addTable(d *gpu.Device) error {
	at := t.carve(d, (tableBytes+recordStep-1)/recordStep*recordStep)
	if at == 0 {
		return nil
	}
	err := t.write(at, make([]byte, tableBytes))
	if n := len(t.tables); err == nil && n > 0 {
		err = t.write(t.tables[n-1].at+listedWindows*entryBytes, binary.LittleEndian.AppendUint64(nil, uint64(at)))
	}
	if err == nil {
		t.tables = append(t.tables, &listed{at: at})
	}
	return err
}

func (t *records) write(at uintptr, b []byte) error {
	return t.device.Write(mem.Device(t.device.Number(), at, len(b)), b)
}

// list puts a window into the tables, if there is memory for one more table where all are full.
func (t *records) list(w *window) error { return t.replace(nil, w) }

// unlist takes a window out of the tables, if it is there.
func (t *records) unlist(w *window) error { return t.replace(w, nil) }

// replace puts w where old is, which is nil for the first free entry.
func (t *records) replace(old, w *window) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := 0; ; n++ {
		if n == len(t.tables) {
			if w == nil {
				return nil
			}
			if err := t.addTable(w.comm.device); err != nil || n == len(t.tables) {
				return err
			}
		}
		x := t.tables[n]
		i := slices.Index(x.windows[:], old)
		if i < 0 {
			continue
		}
		x.windows[i] = w
		var entry []byte
		for _, v := range entryOf(w) {
			entry = binary.LittleEndian.AppendUint64(entry, v)
		}
		return t.write(x.at+uintptr(i)*entryBytes, entry)
	}
}

// entryOf is a window's entry in a table: zeros for nil.
func entryOf(w *window) (e [3]uint64) {
	if w != nil {
		e = [3]uint64{uint64(w.at), uint64(w.bytes), uint64(w.record)}
	}
	return e
}
