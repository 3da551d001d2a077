//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// The tests here are of torch_ringo in bindings/python, a backend of torch.distributed on host memory.

// bindings is the folder of Python's modules.
func bindings(t *testing.T) string { return filepath.Join(ctest.Root(t), "bindings", "python") }

// python is an interpreter with torch, such as Debian's after "apt-get install python3-torch". Without one the test is
// skipped or fails.
func python(t *testing.T) string {
	t.Helper()
	tier.Heavy(t)
	name := withTorch()
	if name == "" {
		need.Missing(t, "torch",
			"there is no python3 with torch: apt-get install --no-install-recommends python3-torch")
	}
	return name
}

// withTorch looks once, for an import of torch takes more than a second.
var withTorch = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import torch.distributed").Run() == nil {
			return name
		}
	}
	return ""
})

// ranks runs a script on three ranks. The rank dead is killed, -1 for none; the others' last word must be ok.
func ranks(t *testing.T, script string, dead int, args ...string) {
	t.Helper()
	const n = 3
	with, library, dir := python(t), ctest.Library(t), bindings(t)
	meet := filepath.Join(t.TempDir(), "store")
	texts, logs, errs := make([]bytes.Buffer, n), make([]bytes.Buffer, n), make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			cmd := exec.Command(with, filepath.Join("tests", script), strconv.Itoa(rank), strconv.Itoa(n), meet)
			cmd.Args = append(cmd.Args, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "RINGO_LIBRARY="+library, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1",
				"OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo")
			cmd.Stdout, cmd.Stderr = &texts[rank], &logs[rank]
			errs[rank] = cmd.Run()
		})
	}
	wg.Wait()
	for rank := range n {
		if rank != dead {
			assert.NoError(t, errs[rank], "rank %d: %s%s", rank, &texts[rank], &logs[rank])
			assert.True(t, strings.HasSuffix(texts[rank].String(), "ok\n"), "rank %d: %s%s", rank, &texts[rank], &logs[rank])
		}
	}
}

// TestPython runs all operations of a process group, DDP with Ringo and with Gloo, and groups whose ranks are threads.
func TestPython(t *testing.T) { ranks(t, "cases.py", -1) }

// TestPythonNorm runs ringo_norm.py without GPUs, where operations of PyTorch take the place of the library's kernel.
func TestPythonNorm(t *testing.T) { ranks(t, "norm.py", -1) }

// TestPythonServing puts Ringo's norms into stand-ins for vLLM's and SGLang's Llama, by the engines' plugin points.
func TestPythonServing(t *testing.T) { ranks(t, "serving.py", -1) }

// TestPythonSuite runs a short list of PyTorch's own cases, which are in Debian's package.
func TestPythonSuite(t *testing.T) {
	ranks(t, "suite.py", -1, append([]string{"ringo"}, strings.Fields(short)...)...)
}

// short is the names of quick cases: of each operation, with groups, and of DDP. None may be skipped.
const short = `
test_DistributedDataParallelCPU test_accumulate_gradients_no_sync_grad_is_view test_all_gather_coalesced_with_empty test_all_gather_complex
test_all_gather_full_group test_all_gather_object_default_pg test_all_reduce_coalesced_group_sum test_all_reduce_complex_unsupported_ops
test_all_reduce_full_group_min test_all_reduce_group_product test_all_reduce_sum_async test_all_reduce_sum_complex test_all_to_all
test_all_to_all_full_group test_all_to_all_single_equal_split_complex test_all_to_all_single_unequal_split_group test_barrier_full_group
test_batch_isend_irecv_gloo_tags test_broadcast_group test_broadcast_object_list test_ddp_create_graph test_gather_checks test_gather_group
test_gather_object test_get_future test_irecv test_isend_autograd_profiler test_reduce_full_group_max test_reduce_group_min test_reduce_sum_twice
test_scatter_checks test_scatter_complex test_scatter_object_list test_send_recv_any_source_torch_profiler test_send_recv_with_tag
test_sparse_all_reduce_sum test_static_graph_api_cpu
`

// TestPythonLost wants the other ranks to get an error that names the rank that was lost, in collectives, messages, DDP
// and what else reads a future in C++.
func TestPythonLost(t *testing.T) {
	for _, way := range []string{"killed", "raises", "exits", "leaves", "hangs", "stops"} {
		t.Run(way, func(t *testing.T) { ranks(t, "lost.py", 1, way) })
	}
}

// TestPythonUnheard wants each rank told of a failure for which it has not waited.
func TestPythonUnheard(t *testing.T) { ranks(t, "unheard.py", -1) }

// TestPythonRestarted wants torchrun to start the ranks again after one was killed. torchrun of torch 1.13 fails under
// Python 3.11 without the options -r and -t.
func TestPythonRestarted(t *testing.T) {
	cmd := exec.Command(python(t), "-m", "torch.distributed.run", "--nproc_per_node=3", "--max_restarts=1",
		"--monitor_interval=0.2", "-r", "1", "-t", "1",
		"--log_dir", t.TempDir(), "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
		filepath.Join("tests", "restarted.py"))
	cmd.Dir = bindings(t)
	cmd.Env = append(os.Environ(), "RINGO_LIBRARY="+ctest.Library(t), "PYTHONPATH=.",
		"PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
	text, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", text)
	assert.Contains(t, string(text), "ok after 1 restart")
}
