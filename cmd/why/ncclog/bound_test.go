package ncclog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// A line that claims the most ranks, a log of many lines and a log of long lines are read in seconds, not minutes.
func TestBounds(t *testing.T) {
	l := newLog()
	require.NoError(t, l.add("f",
		[]byte(fmt.Sprintf("h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks %d cudaDev 0 busId 1 - Init START\n", hang.MaxRanks))))
	j := l.job()
	require.Equal(t, hang.MaxRanks, len(j.Ranks))

	l = newLog()
	line := "h:1:2 [0] NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
	require.NoError(t, l.add("f", []byte(strings.Repeat(line, 20000))))
	l = newLog()
	require.Error(t, l.add("f", []byte(strings.Repeat(strings.Repeat("a", maxLine)+"\n", 500))))
}
