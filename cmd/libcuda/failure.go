//go:build cgo && linux && (amd64 || arm64)

package main

// #include <stdint.h>
// int ringo_cuda_callers(uintptr_t *to, int room);
// const char *ringo_cuda_entry(void);
import "C"

import (
	"errors"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A failure is a call of the program that has failed: of the driver, the runtime or NCCL.
type failure struct {
	Call    string `json:"call"`              // "cudaMemcpy"
	Error   string `json:"error"`             // "cudaErrorInvalidValue"
	Result  int    `json:"result"`            // its number
	Text    string `json:"text"`              // why
	At      string `json:"at,omitempty"`      // where the program makes the call
	Follows bool   `json:"follows,omitempty"` // from an earlier failure, since which all calls fail
}

// A failedComm is a communicator that has failed, as one of its ranks says.
type failedComm struct {
	ID   string `json:"id"`           // the same on all ranks
	Call string `json:"call"`         // "AllReduce"
	At   string `json:"at,omitempty"` // "ncclAllReduce at sum.cu:12"
	Text string `json:"text"`
}

//export ringo_cuda_note_comm
func ringo_cuda_note_comm(comm, call, why *C.char, device C.int) {
	r, err := theReport()
	if r == nil || err != nil {
		return
	}
	x := failedComm{ID: C.GoString(comm), Call: C.GoString(call), Text: C.GoString(why)}
	// The calls last made for the GPU are known; it may be another one that has failed.
	var sites []string
	for _, s := range sitesOf(int(device)) {
		message := x.Call == "Send" && (s.name == "ncclSend" || s.name == "ncclRecv")
		if device >= 0 && (message || s.name == "nccl"+x.Call) {
			if text := s.String(); !slices.Contains(sites, text) {
				sites = append(sites, text)
			}
		}
	}
	x.At = strings.Join(sites, ", ")
	r.write(line{Comm: &x})
}

// failures are the failed calls of the process, with how often each has failed in the same way and at the same place.
var failures = struct {
	sync.Mutex
	times map[failure]int
}{times: map[failure]int{}}

// mostFailures is the most failures that have each their own text.
const mostFailures = 1000

// said is what the driver's last failed call on a thread has said, by the thread's number.
var said sync.Map

// keep keeps an error of the driver for the report of the call that fails of it.
func keep(err error) { said.Store(syscall.Gettid(), err) }

// answers are the errors that calls give where nothing is wrong: programs ask by them, and go on.
var answers = map[string][]cuda.Result{
	"DeviceGetCount": {cuda.ErrNoDevice}, "GetDeviceCount": {cuda.ErrNoDevice}, "Init": {cuda.ErrNoDevice},
	"DeviceGetAttribute": {cuda.ErrInvalidValue}, "DeviceGetP2PAttribute": {cuda.ErrInvalidValue},
	"FuncGetAttribute": {cuda.ErrInvalidValue}, "KernelGetAttribute": {cuda.ErrInvalidValue},
	"CtxEnablePeerAccess": {cuda.ErrPeerAccessAlreadyEnabled}, "DeviceEnablePeerAccess": {cuda.ErrPeerAccessAlreadyEnabled},
	"CtxGetDevice": {cuda.ErrInvalidContext}, "PointerGetAttribute": {cuda.ErrInvalidValue},
	"PointerGetAttributes": {cuda.ErrInvalidValue}, "MemGetAddressRange": {cuda.ErrInvalidValue, cuda.ErrNotFound},
	"MemRetainAllocationHandle": {cuda.ErrInvalidValue}, "ModuleGetFunction": {cuda.ErrNotFound},
	"ModuleGetGlobal": {cuda.ErrNotFound}, "LibraryGetKernel": {cuda.ErrNotFound}, "LibraryGetGlobal": {cuda.ErrNotFound},
	"GetProcAddress": {cuda.ErrNotFound}, "GetDriverEntryPoint": {cuda.ErrNotFound},
}

// plainName is an exported name without what tells its versions apart.
func plainName(name string) string {
	name = strings.TrimPrefix(name, "__")
	for {
		i := strings.LastIndexByte(name, '_')
		if i < 0 {
			return name
		}
		switch name[i:] {
		case "_v2", "_v3", "_v4", "_v10000", "_ptds", "_ptsz":
			name = name[:i]
		default:
			return name
		}
	}
}

// isAnswer reports whether a result of a call is an answer rather than a failure.
func isAnswer(call string, r cuda.Result) bool {
	if strings.HasPrefix(call, "nccl") {
		return false
	}
	asked := strings.TrimPrefix(strings.TrimPrefix(call, "cuda"), "cu")
	return r == cuda.ErrNotReady || r == cuda.ErrDeinitialized || slices.Contains(answers[asked], r)
}

//export ringo_cuda_note
func ringo_cuda_note(call, name *C.char, result C.int, why *C.char, follows C.int) {
	r, err := theReport()
	if r == nil || err != nil {
		return
	}
	x := failure{Call: C.GoString(call), Error: C.GoString(name), Result: int(result), Text: C.GoString(why),
		Follows: follows != 0}
	if call == nil {
		x.Call = C.GoString(C.ringo_cuda_entry())
	}
	x.Call = plainName(x.Call)
	if isAnswer(x.Call, cuda.Result(result)) {
		return
	}
	var ok bool
	if x.At, ok = callerOf(x.Call); !ok {
		return
	}
	if x.Error == "" {
		x.Error = cuda.Result(result).Error()
	}
	if err, ok := said.LoadAndDelete(syscall.Gettid()); ok && why == nil {
		x.explain(err.(error))
	}
	r.failed(x)
}

// explain takes what the driver has said for the reason, if it is about the same result.
func (x *failure) explain(err error) {
	var e *cuda.Error
	switch {
	case !errors.As(err, &e):
		x.Text = err.Error()
	case int(e.Result) == x.Result:
		x.Text, x.Follows = e.Why(), e.Follows
	}
}

// callerOf is where the program makes the call that has failed. ok is false if it is not the program that makes it:
// libnccl.so calls the driver, and what counts calls of NCCL asks for the GPU of a communicator.
func callerOf(call string) (at string, ok bool) {
	var list [16]C.uintptr_t
	callers := list[:C.ringo_cuda_callers(&list[0], C.int(len(list)))]
	within := func(library string) bool {
		if len(callers) == 0 {
			return false
		}
		file, _ := fileOf(uintptr(callers[0]))
		return strings.HasPrefix(filepath.Base(file), library)
	}
	for within("libnccl.so") {
		if !strings.HasPrefix(call, "nccl") {
			return "", false
		}
		callers = callers[1:]
	}
	for within("libringo-count.so") {
		if call == "ncclCommCuDevice" {
			return "", false
		}
		callers = callers[1:]
	}
	return programLine(callers), true
}

// failed counts a failed call. It is in the file at once, with how often it has happened as often as that has doubled.
func (r *report) failed(x failure) {
	failures.Lock()
	defer failures.Unlock()
	if len(failures.times) > mostFailures { // with addresses, say, that are never the same
		x.Text = "as others before"
	}
	failures.times[x]++
	if n := failures.times[x]; bits.OnesCount(uint(n)) == 1 {
		r.write(line{Failed: &x, Times: n})
	}
}

// allFailed writes how often each call has failed.
func (r *report) allFailed() {
	failures.Lock()
	defer failures.Unlock()
	for x, n := range failures.times {
		r.write(line{Failed: &x, Times: n})
	}
}
