package handbook_test

import (
	"log"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/command"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestMain lets the test be the command ringo, so that nothing has to be built.
func TestMain(m *testing.M) {
	if err := defineRadix(); err != nil {
		log.Fatal(err)
	}
	if os.Getenv("HANDBOOK_COMMAND") != "" {
		command.Main()
	}
	os.Exit(m.Run())
}

// Commands of chapters that need no other process do what they say.
func TestCommands(t *testing.T) {
	if tier.Race {
		t.Skip("each is a process with one goroutine that works; the run without the race detector has them")
	}
	seen := map[string]bool{}
	for _, file := range chapters(t) {
		for _, m := range regexp.MustCompile("go run \\.(?:/cmd/ringo)? ((?:sim|explain|plot|play) [^`#\n]*)").FindAllStringSubmatch(read(t, file), -1) {
			line := strings.TrimSpace(m[1])
			if seen[line] || strings.Contains(line, "-over") {
				continue
			}
			seen[line] = true
			args := strings.Fields(line)
			for i, a := range args {
				switch {
				case strings.HasPrefix(a, "bench/"):
					args[i] = "../../" + a
				case i > 0 && (args[i-1] == "-o" || args[i-1] == "-trace"):
					args[i] = t.TempDir() + "/" + a
				}
			}
			if args[0] == "play" && !slices.Contains(args, "-o") {
				args = append(args, "-o", t.TempDir()+"/page.html")
			}
			exe, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(exe, args...)
			cmd.Env = append(os.Environ(), "HANDBOOK_COMMAND=1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: ringo %s: %s", file, line, out)
			require.NotEmpty(t, out, "%s: ringo %s", file, line)
		}
	}
	require.NotEmpty(t, seen)
}
