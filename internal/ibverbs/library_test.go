package ibverbs

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// The library opens, and a machine without RDMA has no devices.
func TestOpen(t *testing.T) {
	v, err := Open()
	if err != nil {
		need.Missing(t, "verbs", err.Error())
	}
	names, err := v.GetDeviceList()
	require.NoError(t, err)
	if _, err := os.Stat("/sys/class/infiniband"); err != nil {
		require.Empty(t, names)
	}
	_, err = v.OpenDevice("no such device")
	require.ErrorContains(t, err, "no such device")
}

// contexts is memory that does not move.
var contexts [(beforeQueryPort + contextSize) / 8]uintptr

// A function of newer libraries is found if the context's own size includes it, else not.
func TestLater(t *testing.T) {
	const word = 8
	memory := contexts[:]
	context := uintptr(unsafe.Pointer(&memory[beforeQueryPort/word]))
	abi, size := &memory[(beforeQueryPort+contextABI)/word], &memory[(beforeQueryPort-beforeSize)/word]
	memory[0] = 4711 // the address of query_port
	*size = beforeQueryPort + contextSize
	require.Zero(t, later(context, beforeQueryPort), "no verbs_context")
	*abi = extendedContexts
	require.Equal(t, uintptr(4711), later(context, beforeQueryPort))
	*size -= word
	require.Zero(t, later(context, beforeQueryPort), "an older library")
}

func TestErrors(t *testing.T) {
	require.NoError(t, done(modifyQP, 0, syscall.EINVAL))
	require.EqualError(t, done(modifyQP, uintptr(syscall.ENOMEM), 0), "ibv_modify_qp: cannot allocate memory")
	require.ErrorIs(t, done(modifyQP, uintptr(0xffffffff), syscall.EAGAIN), syscall.EAGAIN)
	require.NoError(t, made(regMR, 1, syscall.EINVAL))
	require.ErrorIs(t, made(regMR, 0, syscall.EPERM), syscall.EPERM)
	_, err := new(library).RegDMABufMR(nil, 0, 0, 0, 0, 0)
	require.EqualError(t, err, "libibverbs.so.1 has no ibv_reg_dmabuf_mr: it needs rdma-core 34 or newer")
	require.Equal(t, "transport retry counter exceeded", RetryExcErr.String())
	require.Equal(t, "status 99", Status(99).String())
	require.Equal(t, "port is down", EventPortErr.String())
	require.Equal(t, "event 99", EventType(99).String())
}
