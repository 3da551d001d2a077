package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarantees are the sentences of README's Guarantees, by how they begin, and the tests that hold them.
var guarantees = map[string][]string{
	"All ranks get the same bits": {"TestSameBits", "TestDeterministicRandom",
		"TestDeviceDeterministicRandom"},
	"Ranks that call different collectives get an error": {"TestDisagreement", "TestMismatch",
		"TestDisagreementOfComposites", "TestDeviceMismatchEachWay"},
	"A Send or Recv, and so a Scan": {"TestDisagreement", "TestRecvAgainstCollective",
		"TestRecvBeforeCollective"},
	"A Recv of which the peer knows nothing": {"TestTimeout"},
	"A rank that dies ends the others": {"TestKilled", "TestDeviceKilled", "TestDeparture",
		"TestDeviceLeft", "TestMatrix"},
	"When a rank dies as a communicator is opened": {"TestGrowBereaved", "TestGrowFails", "TestKills"},
	"A rank that waits for nothing":                {"TestIdleRank", "TestDeviceIdleRank", "TestMatrix"},
	"What was sent before a Close":                 {"TestSendThenClose"},
	"Every wait has a deadline": {"TestTimeout", "TestDeviceTimeout", "TestDeadlineBehind",
		"TestAbort", "TestDeviceAbort"},
	"What is wrong with one rank": {"TestInvalid", "TestDeviceBadCalls", "TestMessageToOneself"},
	"The data path allocates nothing": {"TestNoAllocations", "TestFunctionsAllocateNothing",
		"TestObservedCallsAllocateNothing"},
}

// Each sentence of README's Guarantees has tests.
func TestGuarantees(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(readme), "\n## Guarantees\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n## ")
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "build":
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(b, -1) {
			tests[string(m[1])] = true
		}
		return err
	}))
	held := 0
	for _, sentence := range regexp.MustCompile(`(?:^|[.)]\s+|- )([A-Z][^.]*)`).FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		known := false
		for begin, names := range guarantees {
			if strings.HasPrefix(sentence[1], begin) {
				known = true
				held++
				for _, name := range names {
					require.True(t, tests[name], "%s: there is no %s", begin, name)
				}
			}
		}
		require.True(t, known, "no test is named for: %s", sentence[1])
	}
	require.Len(t, guarantees, held)
}
