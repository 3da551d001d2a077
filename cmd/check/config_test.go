package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLongest: a launcher waits for the meeting, for the work and for the answers; without end, if the work has none.
func TestLongest(t *testing.T) {
	for _, c := range []struct {
		config config
		within time.Duration
	}{
		{config{}, withinQuick},
		{config{Full: true}, withinFull},
		{config{Full: true, Within: time.Minute}, time.Minute},
		{config{Stages: []stage{}, Within: time.Second}, time.Second},
	} {
		require.Equal(t, time.Hour+connectTime+rollTime+c.within+2*answerTime, c.config.Longest(time.Hour))
	}
	require.Zero(t, (&config{Stages: []stage{}}).Longest(time.Hour))
}
