//go:build linux && (amd64 || arm64)

package libcudart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// answersDiffer are the answers in which the emulator differs on purpose: group, call, and the how manieth such call.
var answersDiffer = map[string]string{
	"devices | cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) 1":                                          "there is no cache to keep lines in",
	"streams | cudaStreamEndCapture(stream, nullptr) 1":                                                               "a null result is refused first",
	"streams | cudaThreadExchangeStreamCaptureMode(&mode) 1":                                                          "mode 7 is none",
	"launches | cudaGetFuncBySymbol(nullptr, f) 1":                                                                    "the result has nowhere to go",
	"graphs | cudaGraphAddMemsetNode(&n, g, nullptr, 0, &m) 3":                                                        "elements of 2 bytes are not carried out",
	"shares | cudaIpcGetEventHandle(nullptr, event) 1":                                                                "a null result is refused first",
	"driver | cuMemAlloc(nullptr, 4) 2":                                                                               "a null result is refused first",
	"driver | cuMemFree(0) 1":                                                                                         "cudaFree of null tells of a context that has failed",
	"driver | cuMemFree(4096) 1":                                                                                      "a thread without a context is told so first",
	"driver | cuStreamCreate(&s, 77) 1":                                                                               "a thread without a context is told so first",
	"driver | cuModuleLoadData(&m, nullptr) 1":                                                                        "a null image is refused first",
	"virtual memory | cuMemGetAllocationGranularity(&unit, &odd, CU_MEM_ALLOC_GRANULARITY_MINIMUM) 1":                 "there is no device 99",
	"virtual memory | cuMemImportFromShareableHandle(&again, (void *)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) 1": "−1 is no file",
	"virtual memory | cuMemUnmap(p, 2 * unit) 1":                                                                      "what was never mapped is unmapped by mistake",
	"virtual memory | cuMemUnmap(p, unit / 2) 1":                                                                      "half a mapping is unmapped by mistake",
	"fork after use | cudaEventQuery(event) 1":                                                                        "all calls of the child are refused",
	"fork after use | the child ends by 1":                                                                            "calls of the driver crash there, and are refused here",
	"destructors: of an object made after the first call | cudaMemset(device, 0, 4) 1":                                "what is before it crashes there",
	"destructors: of an object made after the first call | cudaFree(device) 1":                                        "what is before it crashes there",
	"destructors: of an object made after the first call | cuCtxSynchronize() 1":                                      "after a reset there is no context",
	"destructors: atexit after the first call | cuCtxSynchronize() 1":                                                 "after a reset there is no context",
	"destructors without a call: of an object made before main | cuCtxSynchronize() 1":                                "after a reset there is no context",
	"destructors without a call: of an object made before main | one<<<1, 1>>>(nullptr) 1":                            "clang has taken the kernels away by then",
}

// A device that a kernel's fault has ended and the program has reset can be used; the recorded one could not.
const unavailable = "cudaErrorDevicesUnavailable"

// answersOf are the lines of testdata/answers.cu, each with the how manieth it is of its group and call.
func answersOf(text string) (keys []string, answers map[string]string) {
	answers = map[string]string{}
	count := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, " | ")
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		count[line[:at]]++
		key := fmt.Sprintf("%s %d", line[:at], count[line[:at]])
		keys = append(keys, key)
		answers[key] = line[at+3:]
	}
	return keys, answers
}

// TestAnswers asks the emulated driver and runtime what an H100 was asked (testdata/answers.txt): what crashes there
// may have any answer, "?" is not recorded. To record:
// nvcc -cudart shared -arch=sm_90 -o answers answers.cu -lcuda && ./answers
func TestAnswers(t *testing.T) {
	tier.Heavy(t)
	text := must.Get(os.ReadFile(filepath.Join("testdata", "answers.txt")))
	cmd := exec.Command(ctest.CUDA(t, filepath.Join("testdata", "answers.cu"), "-O2", "-lcuda"))
	cmd.Env = append(ctest.OnHost(), "LD_LIBRARY_PATH="+filepath.Join(ctest.Kit(t), "lib64"), "RINGO_EMULATE=1",
		"RINGO_EMULATE_GPU=h100")
	out := must.Get(cmd.Output())
	keys, want := answersOf(string(text))
	require.Greater(t, len(keys), 900)
	_, got := answersOf(string(out))
	unused := map[string]bool{}
	for key := range answersDiffer {
		unused[key] = true
	}
	for _, key := range keys {
		w, g := want[key], got[key]
		_, differs := answersDiffer[key]
		delete(unused, key)
		switch {
		case w == "?" || w == "crashes" || w == unavailable:
			require.NotEqual(t, "crashes", g, key)
		case differs:
			require.NotEqual(t, w, g, "%s: as on the H100, so strike it out in answersDiffer", key)
		default:
			require.Equal(t, w, g, key)
		}
	}
	require.Empty(t, unused)
}
