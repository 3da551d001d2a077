package plugin

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// Functions of a table, in the order of version 11. Each version has a name first, and a
// prefix of these.
const (
	fnInit = iota
	fnDevices
	fnGetProperties
	fnListen
	fnConnect
	fnAccept
	fnRegMr
	fnRegMrDmaBuf
	fnDeregMr
	fnIsend
	fnIrecv
	fnIflush
	fnTest
	fnCloseSend
	fnCloseRecv
	fnCloseListen
	fnGetDeviceMr
	fnIrecvConsumed
	fnMakeVDevice
	fnFinalize
	fnSetNetAttr
	functions
)

var functionNames = [functions]string{
	"init", "devices", "getProperties", "listen", "connect", "accept", "regMr", "regMrDmaBuf", "deregMr", "isend", "irecv",
	"iflush", "test", "closeSend", "closeRecv", "closeListen", "getDeviceMr", "irecvConsumed", "makeVDevice", "finalize",
	"setNetAttr",
}

// versions are the known versions of the table, best first, with the number of functions of each.
var versions = []struct{ number, functions int }{
	{11, fnSetNetAttr + 1}, {10, fnMakeVDevice + 1}, {9, fnMakeVDevice + 1}, {8, fnIrecvConsumed + 1},
}

// needed are the functions without which there is no connection.
var needed = []int{
	fnInit, fnDevices, fnGetProperties, fnListen, fnConnect, fnAccept, fnRegMr, fnDeregMr, fnIsend, fnIrecv, fnTest,
	fnCloseSend, fnCloseRecv, fnCloseListen,
}

// A table is the functions of a plugin.
type table struct {
	version int
	name    string
	fn      [functions]uintptr // 0 where the plugin has none
	voice   *voice             // the plugin's log function
}

// findTable reads the newest known table of a library.
func findTable(lib dl.Library) (t table, err error) {
	for _, v := range versions {
		p, missing := lib.Sym(fmt.Sprintf("ncclNetPlugin_v%d", v.number))
		if missing != nil {
			continue
		}
		words := unsafe.Slice((*uintptr)(pointer(p)), 1+v.functions)
		t = table{version: v.number, name: label(words[0])}
		copy(t.fn[:], words[1:])
		for _, f := range needed {
			if t.fn[f] == 0 {
				return t, fmt.Errorf("its table has no %s", functionNames[f])
			}
		}
		return t, nil
	}
	return t, fmt.Errorf("it exports none of ncclNetPlugin_v%d to v%d: is it a network plugin, and not too old or too "+
		"new?",
		versions[len(versions)-1].number, versions[0].number)
}

// pointer is the pointer of an address outside of Go's memory.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// maxText and maxLabel are the most bytes that are read of a C string: a line of a log, and a name.
const (
	maxText  = 4096
	maxLabel = 256
)

// text is a copy of the C string at p, at most most bytes of it; "" for a null pointer.
func text(p uintptr, most int) string {
	if p == 0 {
		return ""
	}
	n := 0
	for n < most && *(*byte)(unsafe.Add(pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointer(p)), n))
}

// label is a copy of a name in C, with a ? for each character that cannot be printed.
func label(p uintptr) string { return printable(text(p, maxLabel)) }

// Kinds of memory that a plugin may take, a set in ptrSupport and one in regMr: NCCL_PTR_HOST and
// so on.
const (
	hostMemory   = 1
	deviceMemory = 2
	dmaBuf       = 4 // of a GPU; only in ptrSupport
)

// propertiesV8 is ncclNetProperties_v8_t, and so on. Version 10 equals 9, and 11 adds fields at the end.
type propertiesV8 struct {
	name             uintptr
	pciPath          uintptr
	guid             uint64
	ptrSupport       int32
	regIsGlobal      int32
	speed            int32
	port             int32
	latency          float32
	maxComms         int32
	maxRecvs         int32
	netDeviceType    int32
	netDeviceVersion int32
}

type propertiesV9 struct {
	name             uintptr
	pciPath          uintptr
	guid             uint64
	ptrSupport       int32
	regIsGlobal      int32
	forceFlush       int32
	speed            int32
	port             int32
	latency          float32
	maxComms         int32
	maxRecvs         int32
	netDeviceType    int32
	netDeviceVersion int32
	vProps           struct {
		ndevs int32
		devs  [4]int32
	}
	maxP2pBytes  uint64
	maxCollBytes uint64
}

// device reads the properties at p, which getProperties has written.
func (t *table) device(index int, p unsafe.Pointer) Device {
	if t.version == 8 {
		v := (*propertiesV8)(p)
		return Device{
			Index: index, Name: label(v.name), PCIPath: label(v.pciPath), Speed: speed(v.speed), MaxConns: int(v.maxComms),
			MaxRecvs: int(v.maxRecvs), MaxBytes: math.MaxInt32, memory: int(v.ptrSupport), offload: int(v.netDeviceType),
		}
	}
	v := (*propertiesV9)(p)
	d := Device{
		Index: index, Name: label(v.name), PCIPath: label(v.pciPath), Speed: speed(v.speed), MaxConns: int(v.maxComms),
		MaxRecvs: int(v.maxRecvs), MaxBytes: math.MaxInt32, memory: int(v.ptrSupport), offload: int(v.netDeviceType),
		flush: v.forceFlush != 0,
	}
	if b := v.maxP2pBytes; b > 0 && b < math.MaxInt32 {
		d.MaxBytes = int(b)
	}
	return d
}

// maxSpeed is the highest speed in Mbit/s that is believed.
const maxSpeed = 100_000_000

// speed is the plugin's figure, 0 if no card can have it.
func speed(mbps int32) int {
	if mbps < 0 || mbps > maxSpeed {
		return 0
	}
	return int(mbps)
}
