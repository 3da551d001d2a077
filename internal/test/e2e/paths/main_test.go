package paths

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/gpucommtest"
)

func TestMain(m *testing.M) { gpucommtest.Main(m, nil, nil) }
