package cudatest

import (
	"encoding/hex"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/must"
)

// How a child knows that it is one and what it has to do.
const (
	roleVariable = "CUDATEST_ROLE"
	argVariable  = "CUDATEST_ARG"
)

func childRole() string { return os.Getenv(roleVariable) }

func runChild(t *testing.T, d cuda.Driver, role string) {
	f, ok := map[string]func(e *env, arg string){
		"import":      childImport,
		"peer import": childPeerImport,
		"ipc memory":  childIPCMemory,
		"ipc within":  childIPCWithin,
		"ipc values":  childIPCValues,
		"ipc event":   childIPCEvent,
		"fault":       childFault,
		"no access":   childNoAccess,
	}[role]
	require.True(t, ok, "role %q", role)
	with(t, d, func(e *env) { f(e, os.Getenv(argVariable)) })
}

// child runs a role in another process, which must succeed, and returns what it
// wrote. The files are its descriptors from 3 on.
func (e *env) child(role, arg string, files ...*os.File) string {
	e.Helper()
	exe := must.Get(os.Executable())
	top, _, _ := strings.Cut(e.Name(), "/")
	cmd := exec.Command(exe, "-test.run=^"+regexp.QuoteMeta(top)+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), roleVariable+"="+role, argVariable+"="+arg)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	require.NoError(e, err, "%s", out)
	require.Contains(e, string(out), "--- PASS: "+top, "the child ran the test")
	return string(out)
}

func testIPCMemory(e *env) {
	const n = 4 << 20
	p := e.alloc(n)
	e.put(p+4096, 11)
	h := must.Get(e.d.IpcGetMemHandle(p))
	e.child("ipc memory", hex.EncodeToString(h[:]))
	require.Equal(e, []uint32{11, 22}, e.words(p+4096, 2), "the child wrote")

	e.is(must.Err(e.d.IpcGetMemHandle(e.host(4096))), cuda.ErrInvalidValue)
	e.is(must.Err(e.d.IpcGetMemHandle(0)), cuda.ErrInvalidValue)
	e.is(e.d.IpcCloseMemHandle(p), cuda.ErrInvalidValue, cuda.ErrMapFailed) // not opened
	require.Error(e, must.Err(e.d.IpcOpenMemHandle(h)), "a process does not open its own memory")
}

func childIPCMemory(e *env, arg string) {
	h := parseHandle(e, arg)
	p := must.Get(e.d.IpcOpenMemHandle(h))
	require.Equal(e, []uint32{11}, e.words(p+4096, 1))
	args := storeArgs{p + 4100, 22}
	e.noErr(e.d.LaunchKernel(e.kernel("store"), &cuda.Launch{}, cuda.ArgsOf(&args)))
	e.noErr(e.d.CtxSynchronize())
	_, size, err := e.d.MemGetAddressRange(p)
	e.noErr(err)
	require.GreaterOrEqual(e, size, 4<<20)
	e.noErr(e.d.IpcCloseMemHandle(p))
	e.is(e.d.IpcCloseMemHandle(p), cuda.ErrInvalidValue, cuda.ErrMapFailed)
}

// testIPCWithin shares memory that does not begin where the driver's own begins:
// small allocations, of which it has several in one piece, and the middle of a
// large one. A handle is always of the whole allocation.
func testIPCWithin(e *env) {
	const word = 256
	var all []string
	for i, n := range []int{512, 512, 512, 4 << 20} {
		p := e.alloc(n)
		e.put(p+word, uint32(30+i))
		base, size, err := e.d.MemGetAddressRange(p + word)
		e.noErr(err)
		require.Equal(e, []any{p, n}, []any{base, size})
		h := must.Get(e.d.IpcGetMemHandle(p + word))
		all = append(all, hex.EncodeToString(h[:]))
	}
	e.Log(e.child("ipc within", strings.Join(all, " ")))
}

func childIPCWithin(e *env, arg string) {
	const word = 256
	var opened []uintptr
	for i, text := range strings.Fields(arg) {
		h := parseHandle(e, text)
		p := must.Get(e.d.IpcOpenMemHandle(h))
		opened = append(opened, p)
		require.Equal(e, []uint32{uint32(30 + i)}, e.words(p+word, 1), "allocation %d", i)

		// Newer drivers are documented to count, the emulator is an older one.
		if again, err := e.d.IpcOpenMemHandle(h); err == nil {
			e.Log("opened again")
			require.Equal(e, p, again)
			opened = append(opened, again)
		} else {
			e.is(err, cuda.ErrAlreadyMapped)
		}
	}
	for _, p := range opened {
		e.noErr(e.d.IpcCloseMemHandle(p))
	}
}

// testIPCValues has streams wait in own memory for what a child's stream and
// kernel write there.
func testIPCValues(e *env) {
	if found := cuda.Probe(e.d, cuda.StreamValues, e.dev); found.Answer != cuda.Yes {
		e.Skip(found)
	}
	p := e.alloc(4096)
	e.put(p, 0, 0, 0)
	h := must.Get(e.d.IpcGetMemHandle(p))
	s := e.stream()
	x := e.graph(s, func() {
		e.noErr(e.d.StreamWaitValue32(s, p, 1, cuda.WaitEQ))
		e.noErr(e.d.StreamWaitValue32(s, p+4, 2, cuda.WaitGEQ))
		e.noErr(e.d.MemcpyAsync(p+12, p+8, 4, s))
	})
	e.noErr(e.d.GraphLaunch(x, s))
	e.after(func() error { return cuda.Write(e.d, p, []byte{1, 0, 0, 0, 2, 0, 0, 0}) }) // whatever happened
	done := must.Get(e.d.StreamQuery(s))
	require.False(e, done)
	e.child("ipc values", hex.EncodeToString(h[:]))
	e.noErr(e.d.StreamSynchronize(s))
	require.Equal(e, []uint32{1, 2, 3, 3}, e.words(p, 4))
}

func childIPCValues(e *env, arg string) {
	p := must.Get(e.d.IpcOpenMemHandle(parseHandle(e, arg)))
	s, post := e.stream(), e.kernel("post")
	e.noErr(e.d.MemsetD32Async(p+8, 3, 1, s))
	e.noErr(e.d.StreamWriteValue32(s, p, 1, 0))
	e.noErr(e.d.LaunchKernel(post, &cuda.Launch{Stream: s}, cuda.ArgsOf(&storeArgs{p + 4, 2})))
	e.noErr(e.d.StreamSynchronize(s))
	e.noErr(e.d.IpcCloseMemHandle(p))
}

// testIPCEvent has the child record an event that the parent has.
func testIPCEvent(e *env) {
	ev := e.event(cuda.EventInterprocess | cuda.EventDisableTiming)
	h := must.Get(e.d.IpcGetEventHandle(ev))
	e.child("ipc event", hex.EncodeToString(h[:]))
	e.noErr(e.d.EventSynchronize(ev))

	_, err := e.d.IpcGetEventHandle(e.event(cuda.EventDisableTiming))
	e.is(err, cuda.ErrInvalidHandle, cuda.ErrInvalidValue, cuda.ErrMapFailed) // not for other processes
}

func childIPCEvent(e *env, arg string) {
	ev := must.Get(e.d.IpcOpenEventHandle(parseHandle(e, arg)))
	s := e.stream()
	e.noErr(e.d.MemsetD8Async(e.alloc(64), 1, 64, s))
	e.noErr(e.d.EventRecord(ev, s))
	e.noErr(e.d.EventSynchronize(ev))
	e.noErr(e.d.EventDestroy(ev))
}

func parseHandle(e *env, s string) (h cuda.IPCHandle) {
	b := must.Get(hex.DecodeString(s))
	require.Len(e, b, len(h))
	copy(h[:], b)
	return h
}
