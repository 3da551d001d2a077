//go:build linux

package shm_test

import (
	"testing"

	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/shm"
	"github.com/ringo-go/ringo/transport/transporttest"
)

func open(_ testing.TB, cfg transport.Config) transport.Transport {
	return shm.New(cfg, shm.Options{})
}

func TestConformance(t *testing.T) { transporttest.Conformance(t, open) }
func TestProcesses(t *testing.T)   { transporttest.Processes(t, open) }

func BenchmarkInProcess(b *testing.B) {
	transporttest.Bench(b, func(_ testing.TB, cfg transport.Config) transport.Transport {
		cfg.Spin = true
		return shm.New(cfg, shm.Options{})
	})
}

func BenchmarkProcesses(b *testing.B) { transporttest.BenchProcesses(b, open) }

func TestConformanceDir(t *testing.T) {
	dir := t.TempDir()
	transporttest.Conformance(t, func(_ testing.TB, cfg transport.Config) transport.Transport {
		return shm.New(cfg, shm.Options{Dir: dir})
	})
}
