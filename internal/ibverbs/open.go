package ibverbs

import (
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/internal/dl"
)

// Library is the file that Open opens.
const Library = "libibverbs.so.1"

// Open opens the library, once in a process. The error says what is missing.
func Open() (Verbs, error) { return open() }

var open = sync.OnceValues(func() (Verbs, error) {
	l := new(library)
	lib, err := dl.Open(Library)
	if err != nil {
		return nil, fmt.Errorf("%w; install rdma-core (Debian: libibverbs1 ibverbs-providers)", err)
	}
	for f, name := range functionNames {
		if l.fns[f], err = lib.Sym(name); err != nil && function(f) != regDMABufMR {
			return nil, fmt.Errorf("%s is too old: %w", Library, err)
		}
	}
	// Without this call a fork of the process could take registered pages away. The error
	// is ENOSYS where the kernel has no RDMA; the list of devices tells so better.
	dl.Call(l.fns[forkInit])
	return l, nil
})

// A function is an index of functionNames.
type function int

const (
	errnoLocation function = iota
	forkInit
	getDeviceList
	freeDeviceList
	getDeviceName
	openDevice
	closeDevice
	queryDevice
	queryPort
	queryGID
	getAsyncEvent
	ackAsyncEvent
	allocPD
	deallocPD
	regMR
	regDMABufMR // not in older libraries
	deregMR
	createCompChannel
	destroyCompChannel
	createCQ
	destroyCQ
	getCQEvent
	ackCQEvents
	createQP
	modifyQP
	destroyQP
	functionCount
)

var functionNames = [functionCount]string{
	"__errno_location", "ibv_fork_init", "ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name",
	"ibv_open_device",
	"ibv_close_device", "ibv_query_device", "ibv_query_port", "ibv_query_gid", "ibv_get_async_event",
	"ibv_ack_async_event",
	"ibv_alloc_pd", "ibv_dealloc_pd", "ibv_reg_mr", "ibv_reg_dmabuf_mr", "ibv_dereg_mr", "ibv_create_comp_channel",
	"ibv_destroy_comp_channel",
	"ibv_create_cq", "ibv_destroy_cq", "ibv_get_cq_event", "ibv_ack_cq_events", "ibv_create_qp", "ibv_modify_qp",
	"ibv_destroy_qp",
}
