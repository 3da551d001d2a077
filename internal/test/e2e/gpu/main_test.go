package gpu

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gpucommtest"
)

func TestMain(m *testing.M) {
	gpucommtest.Main(m, nil, map[string]commtest.Work{
		"gpufootprint": gpuFootprint, "windowcheck": windowCheck, "windowloop": windowLoop, "windowleave": windowLeave,
		"exits": exits, "mistake": commtest.MistakeWork, "gpuloop": gpuLoop,
	})
}
