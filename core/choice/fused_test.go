package choice

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestNothingIsFused looks at what the compiler makes of the models. Ranks choose by estimated
// times, each for itself. A processor that multiplies and adds with one rounding has other
// times than one that rounds twice, and may choose otherwise; arm64 would.
func TestNothingIsFused(t *testing.T) {
	tier.Heavy(t) // it compiles all that the models import for arm64
	cmd := exec.Command(need.Tool(t, "go"), "build", "-gcflags=-S", "../../sched/sim", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Regexp(t, `\sFMULD\s`, string(text), "it is arm64's code")
	fused := regexp.MustCompile(`\S+\.go:\d+\)\s+FN?M(ADD|SUB)[DS]`).FindAllString(string(text), -1)
	require.Empty(t, fused, "write float64(x*y) + z")
}
