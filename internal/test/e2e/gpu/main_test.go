package gpu

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/commtest"
)

func TestMain(m *testing.M) {
	commtest.Main(m, nil, map[string]commtest.Work{
		"gpufootprint": gpuFootprint, "windowcheck": windowCheck, "windowloop": windowLoop, "windowleave": windowLeave,
		"exits": exits, "gpuloop": gpuLoop,
	})
}
