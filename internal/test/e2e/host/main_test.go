package host

import (
	"flag"
	"os"
	"testing"

	"github.com/ringo-go/ringo/internal/test/commtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(readme) != "" {
		readmeProgram()
		return
	}
	_ = flag.Set("test.parallel", "16") // they wait
	commtest.Main(m, map[string]commtest.Work{"recover": recoverMain, "part": partMain,
		"mistake": commtest.MistakeWork})
}
