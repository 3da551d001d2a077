package gpu_test

import (
	"testing"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
)

func init() {
	gpu.Driver = func(t testing.TB, n int) cuda.Driver { return gputest.Driver(t, gputest.Devices(n)) }
}
