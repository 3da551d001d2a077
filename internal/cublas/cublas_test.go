package cublas

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/need"
)

// stand compiles testdata/blas.c, which stands in for cuBLASLt, with gcc.
func stand(t *testing.T) string {
	gcc := need.Tool(t, "gcc")
	file := filepath.Join(t.TempDir(), "blas.so")
	require.NoError(t, exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", file, "testdata/blas.c").Run())
	return file
}

// Products are described and queued with the arguments that cublasLt.h has, and everything is given back.
func TestProduct(t *testing.T) {
	l, err := Open(stand(t))
	require.NoError(t, err)
	const m, n, k = 48, 32, 80
	p, err := l.Product(m, n, k, 1<<20)
	require.NoError(t, err)
	require.Equal(t, 2*(m*k+k*n+m*n)+32<<20, Bytes(m, n, k))
	require.NoError(t, p.Queue(5))
	require.NoError(t, p.Queue(7))
	fn, err := l.lib.Sym("queued_streams")
	require.NoError(t, err)
	require.EqualValues(t, 12, dl.Call(fn))
	require.Error(t, l.Close(), "descriptions are left")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "again")
	_, err = l.Product(13, n, k, 1<<20)
	require.EqualError(t, err, "cublas: cublasLtMatrixLayoutCreate: status 15")
	require.NoError(t, l.Close())
	require.ErrorContains(t, l.call("cublasLtNever"), "cublasLtNever")
}

func TestAbsent(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none.so"))
	require.ErrorContains(t, err, "cublas: open library")
}
