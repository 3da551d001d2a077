package procs

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/commtest"
)

func TestMain(m *testing.M) {
	commtest.Main(m, map[string]commtest.Work{"recover": recoverMain}, map[string]commtest.Work{"gpuloop": gpuLoop})
}
