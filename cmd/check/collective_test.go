package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Collectives are right; and a rank that contributes wrong data is found.
func TestCollectives(t *testing.T) {
	s := collectiveStage()
	s.Quick = 5 * time.Minute // no machine is so busy
	r, errs := runAll(t, local("a", "a", "b"), config{Stages: []stage{s}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Empty(t, r.Findings)
	require.Len(t, r.Of("collectives", "all-reduce of 1 MiB"), 1)

	flip := func(x []int32) { x[len(x)/2] ^= 1 << 7 }
	r, _ = runAll(t, local("a", "b", "c", "d", "e"), config{Stages: []stage{s}, tamper: map[int]func([]int32){3: flip}})
	require.Equal(t, []string{"collective-rank host d, rank 3"}, codes(r), "%v", r.Findings)
	require.Contains(t, r.Findings[0].Text, " and not ")
	require.Equal(t, broken, r.Verdict)
}
