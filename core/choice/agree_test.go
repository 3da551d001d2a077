package choice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// h200s are n ranks, each on an H200 of its own, on one host.
func h200s(n int) []Member { return productOf("NVIDIA H200").members(n, 0, Budget{}) }

// The least quota of all ranks counts, divided among those of one GPU.
func TestAgreedBlocks(t *testing.T) {
	all := h200s(3)
	all[1].Share = 40
	shared := func() int {
		same := append([]Member{}, all...)
		same[1].GPU = same[0].GPU
		return Agree(same).Most
	}
	require.Equal(t, 40, Agree(all).Most)
	require.Equal(t, 20, shared())
	all[0].Wants.Most = 8
	require.Equal(t, 8, Agree(all).Most)
	for i := range all {
		all[i].Wants.Most = 1000
	}
	require.Equal(t, 128, Agree(all).Most)
	require.Equal(t, 66, shared())
	require.Equal(t, 1, Agree([]Member{{Share: 1, Processors: 1}, {Share: 1, Processors: 1}}).Most)
}

// A rank that wants at least so many blocks has them, also beyond its share.
func TestAgree(t *testing.T) {
	all := h200s(3)
	all[1].Share = 40
	require.Equal(t, Budget{Most: 40}, Agree(all))
	all[0].Wants, all[1].Wants = Budget{Least: 20, Policy: PolicyEfficiency}, Budget{Least: 64}
	require.Equal(t, Budget{Least: 64, Most: 64, Policy: PolicyEfficiency, Bulk: true}, Agree(all))
	all[1].Wants.Policy = PolicyLatency
	require.Equal(t, PolicyEfficiency, Agree(all).Policy, "the thriftiest counts")
	all[0].Wants.Most, all[1].Wants.Policy = 33, PolicyZero
	require.Equal(t, Budget{Least: 33, Most: 33, Policy: PolicyZero}, Agree(all))
}

// Schedules have few lanes where all GPUs move by bulk copies on one host, unless a rank wants more blocks, or the
// policy is another one.
func TestNarrow(t *testing.T) {
	narrow := func(change func(a, b *Member)) bool {
		all := h200s(2)
		change(&all[0], &all[1])
		b := Agree(all)
		require.Equal(t, b.Narrow, b.Lanes() < b.Most)
		require.True(t, b.Bulk || !b.Narrow)
		return b.Narrow
	}
	require.True(t, narrow(func(a, b *Member) {}))
	require.False(t, narrow(func(a, b *Member) { b.GPU = a.GPU }), "a GPU is shared")
	require.False(t, Agree(h200s(3)).Narrow, "measured between two GPUs alone")
	require.False(t, narrow(func(a, b *Member) { b.BulkCopies = false }))
	require.False(t, narrow(func(a, b *Member) { b.Host = "b" }))
	require.True(t, narrow(func(a, b *Member) { b.Wants.Least = 32 }))
	require.False(t, narrow(func(a, b *Member) { b.Wants.Least = 33 }))
	require.True(t, narrow(func(a, b *Member) { b.Wants.Policy = PolicyLatency }), "one rank still wants it")
	require.False(t, narrow(func(a, b *Member) { a.Wants.Policy, b.Wants.Policy = PolicyLatency, PolicyLatency }))
	require.False(t, narrow(func(a, b *Member) { a.Wants.Policy = PolicyEfficiency }))
}

// Schedules go by bulk copies where some rank asks for few blocks, or for a policy, and no GPU is shared.
func TestBulk(t *testing.T) {
	all := h200s(3)
	for _, test := range []struct {
		wants Budget
		want  bool
	}{
		{Budget{}, false}, {Budget{Most: 33}, false}, {Budget{Most: 32}, true}, {Budget{Most: 1}, true},
		{Budget{Policy: PolicyEfficiency}, true}, {Budget{Policy: PolicyZero}, false},
		{Budget{Policy: PolicyZero, Most: 8}, true},
	} {
		all[1].Wants, all[2].Wants = test.wants, Budget{Most: 64}
		require.Equal(t, test.want, Agree(all).Bulk, "%+v", test.wants)
	}
	all[1].Wants.Most, all[0].GPU = 1, all[2].GPU
	require.False(t, Agree(all).Bulk)
}
