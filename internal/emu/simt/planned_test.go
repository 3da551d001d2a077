package simt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// decide runs a kernel by a Book, and gives what the words are then.
func decide(t *testing.T, text string, seed uint64, book *decision.Book, blocks, threads int,
	words ...uint32) []uint32 {
	m := boot(t, text, options{seed: seed})
	m.mem = weakmem.New(weakmem.Config{Seed: seed, Book: book, Report: func(*weakmem.Fault) bool { return true }})
	m.config.Memory, m.config.Book = m.mem, book
	m.world = simt.NewWorld(m.config)
	m.next = 1 << 32
	m.image = load(t, text)(m)
	at := m.words(words...)
	m.run(m.grid("k", blocks, threads, at, 0))
	return m.read(at, len(words))
}

// What a run has decided makes the same run again, and few of the decisions make it wrong in the same way: a flag is
// stored before data, without a fence, and a block reads it between the two.
func TestDecisions(t *testing.T) {
	kernel := hand(`mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra READ;
		st.relaxed.gpu.global.u32 [%rd0], 7;
		st.relaxed.gpu.global.u32 [%rd0+128], 1;
		mov.u32 %r5, 0; WAIT: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 30; @%p2 bra WAIT; ret;
		READ: ld.acquire.gpu.global.u32 %r4, [%rd0+128]; setp.eq.u32 %p2, %r4, 0; @%p2 bra READ;
		ld.relaxed.gpu.global.u32 %r5, [%rd0]; add.u32 %r5, %r5, 1; st.global.u32 [%rd0+64], %r5;`)
	words := make([]uint32, 64)
	wrong := 0
	for seed := range uint64(200) {
		var list []decision.Decision
		got := decide(t, kernel, seed, decision.Record(func(d decision.Decision) { list = append(list, d) }), 2, 1, words...)
		require.Equal(t, got, decide(t, kernel, seed, decision.Follow(list, nil), 2, 1, words...), "seed %d", seed)
		require.EqualValues(t, 8, decide(t, kernel, seed, decision.Follow(nil, nil), 2, 1, words...)[16])
		if got[16] != 1 {
			continue
		}
		wrong++
		for i := 0; i < len(list); {
			less := slices.Delete(slices.Clone(list), i, i+1)
			if decide(t, kernel, seed, decision.Follow(less, nil), 2, 1, words...)[16] == 1 {
				list = less
			} else {
				i++
			}
		}
		var told []decision.Scene
		decide(t, kernel, seed, decision.Follow(list, func(d decision.Decision, s decision.Scene) { told = append(told, s) }),
			2, 1, words...)
		require.LessOrEqual(t, len(list), 6, "%+v", list)
		require.True(t, slices.ContainsFunc(list, func(d decision.Decision) bool { return d.Kind == decision.Hold }))
		require.True(t, slices.ContainsFunc(told, func(s decision.Scene) bool { return s.Value == 7 && s.Seen }), "%+v", told)
	}
	require.NotZero(t, wrong)
}

// Threads that contend for a lock all get it by any decisions, and the same ones make the same run.
func TestDecisionsInPart(t *testing.T) {
	for seed := range uint64(10) {
		run := func(book *decision.Book) (trace []string) {
			m := boot(t, "order.ptx", options{seed: seed})
			m.mem = weakmem.New(weakmem.Config{Seed: seed, Book: book, Report: func(*weakmem.Fault) bool { return true }})
			m.config.Memory, m.config.Book, m.next = m.mem, book, 1<<32
			m.config.Trace = func(e simt.Event) {
				trace = append(trace, fmt.Sprint(e.Block, e.Warp, e.Mask, e.In.Line))
			}
			m.world, m.image = simt.NewWorld(m.config), load(t, "order.ptx")(m)
			lock, count := m.words(0), m.words(0)
			m.run(m.grid("locked", 2, 34, lock, count))
			require.Equal(t, []uint32{68}, m.read(count, 1))
			return trace
		}
		var list []decision.Decision
		run(decision.Record(func(d decision.Decision) { list = append(list, d) }))
		require.NotEmpty(t, list)
		for _, n := range []int{0, len(list) / 2, len(list)} {
			require.Equal(t, run(decision.Follow(list[:n], nil)), run(decision.Follow(list[:n], nil)), "seed %d", seed)
		}
	}
}
