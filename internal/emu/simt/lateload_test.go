package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Load buffering: each of two blocks loads what the other one stores later. PTX allows both to see it, unless a value,
// an address or a branch depends on what was loaded, or something orders the two.
func TestLoadBuffering(t *testing.T) {
	// MINE and YOURS are words of the two blocks; the store is of 1, if nothing says else.
	const head = `mov.u32 %r3, %ctaid.x; mad.wide.u32 %rd2, %r3, 128, %rd0; xor.b32 %r3, %r3, 1;
		mad.wide.u32 %rd3, %r3, 128, %rd0; mov.u32 %r5, 1; `
	const tail = `
		st.global.u32 [%rd2+512], %r4;`
	const load, store = `ld.relaxed.gpu.global.u32 %r4, [%rd2]; `, `st.relaxed.gpu.global.u32 [%rd3], %r5;`
	tests := []struct {
		name, body string
		shows      bool
	}{
		{"relaxed", load + store, true},
		{"volatile", `ld.volatile.global.u32 %r4, [%rd2]; st.volatile.global.u32 [%rd3], %r5;`, true},
		{"weak store between", load + `st.global.u32 [%rd2+1024], %r5; ` + store, true},
		{"generic", `ld.relaxed.gpu.u32 %r4, [%rd2]; st.relaxed.gpu.u32 [%rd3], %r5;`, true},
		{"data", load + `and.b32 %r6, %r4, 0; add.u32 %r5, %r5, %r6; ` + store, false},
		{"address", load + `and.b32 %r6, %r4, 0; mad.wide.u32 %rd3, %r6, 4, %rd3; ` + store, false},
		{"control", load + `setp.gt.u32 %p1, %r4, 7; @%p1 bra SKIP; ` + store + ` SKIP:`, false},
		{"fence.acq_rel", load + `fence.acq_rel.gpu; ` + store, false},
		{"fence.sc", load + `fence.sc.gpu; ` + store, false},
		{"acquire", `ld.acquire.gpu.global.u32 %r4, [%rd2]; ` + store, false},
		{"release", load + `st.release.gpu.global.u32 [%rd3], %r5;`, false},
		{"barrier", load + `bar.sync 0; ` + store, false},
		{"atomic", `atom.relaxed.gpu.global.add.u32 %r4, [%rd2], 0; ` + store, false}, // allowed, but atomics are at once
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen := 0
			for seed := range uint64(tier.Count(400, 1000)) {
				words := decide(t, hand(head+test.body+tail), seed, nil, 2, 1, make([]uint32, 512)...)
				if words[128] == 1 && words[160] == 1 {
					seen++
				}
			}
			require.Equal(t, test.shows, seen > 0, "seen %d times", seen)
		})
	}
}

// A late load is no later than its thread's own store to the same bytes, and than another load of them.
func TestLateLoadOwnBytes(t *testing.T) {
	for seed := range uint64(300) {
		words := decide(t, hand(`ld.relaxed.gpu.global.u32 %r4, [%rd0]; st.relaxed.gpu.global.u32 [%rd0], 5;
			ld.relaxed.gpu.global.u32 %r5, [%rd0]; ld.relaxed.gpu.global.u32 %r6, [%rd0+64];
			st.global.u32 [%rd0+128], %r4; st.global.u32 [%rd0+132], %r5; st.global.u32 [%rd0+136], %r6;`), seed, nil, 1, 1,
			make([]uint32, 64)...)
		require.Equal(t, []uint32{0, 5, 0}, words[32:35])
	}
}

// Of the decisions of a run with load buffering one is that a load is late.
func TestLateLoadDecided(t *testing.T) {
	const kernel = `mov.u32 %r3, %ctaid.x; mad.wide.u32 %rd2, %r3, 128, %rd0; xor.b32 %r3, %r3, 1;
		mad.wide.u32 %rd3, %r3, 128, %rd0; ld.relaxed.gpu.global.u32 %r4, [%rd2]; st.relaxed.gpu.global.u32 [%rd3], 1;
		st.global.u32 [%rd2+512], %r4;`
	seen := 0
	for seed := range uint64(600) {
		var list []decision.Decision
		words := decide(t, hand(kernel), seed, decision.Record(func(d decision.Decision) { list = append(list, d) }), 2, 1,
			make([]uint32, 512)...)
		if words[128] != 1 || words[160] != 1 {
			continue
		}
		seen++
		require.Equal(t, words, decide(t, hand(kernel), seed, decision.Follow(list, nil), 2, 1, make([]uint32, 512)...))
		kinds := map[decision.Kind]int{}
		for _, d := range list {
			kinds[d.Kind]++
		}
		require.NotZero(t, kinds[decision.Load], "%+v", list)
	}
	require.NotZero(t, seen)
}
