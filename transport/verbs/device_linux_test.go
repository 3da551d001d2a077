package verbs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// scripts/verbs-guest runs these tests on a machine with devices. The variables name the devices
// of even and of odd ranks, and the command that cuts the first rail of both.
var even, odd, cut = os.Getenv("VERBS_EVEN"), os.Getenv("VERBS_ODD"), os.Getenv("VERBS_CUT")

// needDevice skips the test where there is no RDMA device; with REQUIRE=rdma it fails.
func needDevice(tb testing.TB) {
	if _, err := probe(Options{}); err != nil {
		need.Missing(tb, "rdma", "scripts/verbs-guest runs this: "+err.Error())
	}
}

func onDevice(_ testing.TB, cfg transport.Config) transport.Transport {
	return New(cfg, deviceOptions(cfg))
}

// deviceOptions have a timeout of 1 s. An emulated machine may stand still for 0.1 s, and the software RoCE of
// Linux 6.1 sends wrong packets when a second timeout comes while it repeats a write: "remote invalid request".
func deviceOptions(cfg transport.Config) Options {
	return Options{HCAs: []string{even, odd}[cfg.Self.Rank%2], Timeout: 18}
}

func TestDeviceConformance(t *testing.T) {
	needDevice(t)
	transporttest.Conformance(t, onDevice, loose)
}

func TestDeviceProcesses(t *testing.T) {
	needDevice(t)
	transporttest.Processes(t, onDevice)
}

func BenchmarkDevice(b *testing.B) {
	needDevice(b)
	transporttest.Bench(b, onDevice)
}

// TestDeviceCut cuts a rail while slots are under way. With another rail they all arrive;
// without, both ends say which link has failed.
func TestDeviceCut(t *testing.T) {
	testCut(t, func(cfg transport.Config) transport.Transport { return onDevice(t, cfg) })
}

// The same with slots in a file that stands in for a GPU's memory.
func TestDevicePlacedCut(t *testing.T) {
	testCut(t, func(cfg transport.Config) transport.Transport {
		return placements["GPU"].open(t, cfg, mapperOptions(t, cfg))
	})
}

func testCut(t *testing.T, open func(transport.Config) transport.Transport) {
	needDevice(t)
	if cut == "" {
		t.Skip("scripts/verbs-guest runs this: needs VERBS_CUT, VERBS_EVEN and VERBS_ODD")
	}
	rails := len(strings.Split(even, ","))
	l := transport.Limits{SlotBytes: 8192, Slots: 8}
	s, r := conntest.Pair(t, l, open)
	const messages = 600
	go func() {
		time.Sleep(100 * time.Millisecond)
		out, err := exec.Command("sh", "-c", cut).CombinedOutput()
		fmt.Printf("cut: %s %s %v\n", cut, out, err)
	}()
	sent, received := flow(s, r, messages, func(i int) { time.Sleep(100 * time.Microsecond) })
	if rails > 1 {
		require.NoError(t, errors.Join(sent, received))
		require.True(t, s.(interface{ first() *rail }).first().phase() != railUp, "the first rail was not cut")
		return
	}
	var link *LinkError
	require.ErrorAs(t, sent, &link)
	require.ErrorAs(t, received, &link)
	t.Log(sent)
	t.Log(received)
}
