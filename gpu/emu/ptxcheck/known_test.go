package ptxcheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A known is a right kernel, and changes that give it a fault that a product once had. The kernels
// are written after the descriptions of these faults.
type known struct {
	name   string
	c      Case
	faults map[string][]string // replacements in the text that make a race: old, new, …
	right  map[string][]string // replacements that make none
	finds  [2]string           // instructions of the race that all faults make
}

func peers(args ...string) []string {
	var list []string
	for _, a := range args {
		list = append(list, a)
		if name, ok := strings.CutSuffix(a, "@"); ok {
			list[len(list)-1] = name
			list = append(list, name+"@(1-rank)")
		}
	}
	return list
}

var knowns = []known{
	{ // vLLM's pull request 2760: bytes of one signal, and no fence between the stages.
		name: "twostage.ptx",
		c: Case{
			GPUs: 2, Buffers: []string{"x=u32[64]:i+100*rank", "sums=u32[32]", "flags=u32[4]:0", "out=u32[64]"},
			Launches: []Launch{{Block: [3]int{32}, Args: peers("x@", "sums@", "flags@", "out", "rank")}},
			Wants:    []string{"out=2*i+100"},
		},
		faults: map[string][]string{
			"bytes": {"call sync,", "call sync_bytes,"},
			"bytes, no fence": {"call sync,", "call sync_bytes,", "st.release.sys", "st.volatile", "ld.acquire.sys",
				"ld.volatile"},
			"words, no fence":  {"st.release.sys", "st.volatile", "ld.acquire.sys", "ld.volatile"},
			"no release":       {"st.release.sys", "st.relaxed.sys"},
			"no acquire":       {"ld.acquire.sys", "ld.relaxed.sys"},
			"release to a GPU": {"st.release.sys", "st.release.gpu"},
		},
		right: map[string][]string{
			"volatile and fences": {"st.release.sys", "fence.acq_rel.sys; st.volatile", "done:\n\tbar.sync 0;",
				"fence.acq_rel.sys;\ndone:\n\tbar.sync 0;", "ld.acquire.sys", "ld.volatile"},
		},
		finds: [2]string{"st.global.u32 [%a9], %r3", "ld.global.u32 %r5, [%a11]"},
	},
	{ // vLLM's pull request 50941: one lane's fence, after the barrier, and flags of others.
		name: "push.ptx",
		c: Case{
			GPUs: 2, Buffers: []string{"x=u32[64]:i+100*rank", "inbox=u32[64]", "flags=u32[2]:0", "out=u32[64]"},
			Launches: []Launch{{Block: [3]int{64}, Args: peers("x", "inbox@", "flags@", "out", "rank")}},
			Wants:    []string{"out=2*i+100"},
		},
		faults: map[string][]string{
			"one lane's fence": {"bar.sync 0;\n\tfence.acq_rel.sys;",
				"bar.sync 0;\n\tsetp.eq.u32 %p2, %r1, 0;\n\t@%p2 fence.acq_rel.sys;"},
			"no fence":    {"bar.sync 0;\n\tfence.acq_rel.sys;", "bar.sync 0;"},
			"for the GPU": {"bar.sync 0;\n\tfence.acq_rel.sys;", "bar.sync 0;\n\tfence.acq_rel.gpu;"},
			"reader":      {"fence.acq_rel.sys;\ndone:", "done:"},
			// Each thread's fence orders what that thread has stored before it, and the barrier comes after: PTX wants the
			// fence of the thread that stores the flag to come after the barrier.
			"fences before the barrier": {"bar.sync 0;\n\tfence.acq_rel.sys;", "fence.acq_rel.sys;\n\tbar.sync 0;"},
		},
		right: map[string][]string{
			// A fence orders all that its thread knows of by the barrier, if it is the thread that stores the flags.
			"one lane's fence and flags": {
				"bar.sync 0;\n\tfence.acq_rel.sys;", "bar.sync 0;\n\tsetp.eq.u32 %p2, %r1, 0;\n\t@%p2 fence.acq_rel.sys;",
				"st.relaxed.sys.global.u32 [%a8], %r2;", `mad.wide.u32 %a8, %r0, 4, %a3;
				@%p2 st.relaxed.sys.global.u32 [%a8], %r2;
				mad.wide.u32 %a8, %r0, 4, %a4;
				@%p2 st.relaxed.sys.global.u32 [%a8], %r2;`,
			},
		},
		finds: [2]string{"st.global.u32 [%a7], %r3", "ld.global.u32 %r5, [%a10]"},
	},
	{ // vLLM's issue 57059: a start barrier that is relaxed on both sides.
		name: "staged.ptx",
		c: Case{
			GPUs: 2, Buffers: []string{"x=u32[64]:i+100*rank", "staged=u32[64]", "flags=u32[2]:0", "out=u32[64]"},
			Launches: []Launch{
				{Kernel: "stage", Block: [3]int{64}, Args: peers("x", "staged")},
				{Kernel: "reduce", Block: [3]int{64}, Args: peers("staged@", "flags@", "out", "rank")},
			},
			Wants: []string{"out=2*i+100"},
		},
		faults: map[string][]string{
			"relaxed": {"st.release.sys", "st.relaxed.sys", "ld.acquire.sys", "ld.relaxed.gpu"},
			"store":   {"st.release.sys", "st.relaxed.sys"},
			"load":    {"ld.acquire.sys", "ld.relaxed.sys"},
		},
		finds: [2]string{"st.global.u32 [%a3], %r1", "ld.global.u32 %r5, [%a8]"},
	},
}

func TestKnown(t *testing.T) {
	for _, k := range knowns {
		k.c.Name = k.name
		right := string(text(t, k.name))
		run := func(name string, replace []string, seeds int) (r *Report) {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				s := right
				if replace != nil {
					s = strings.NewReplacer(replace...).Replace(s)
					require.NotEqual(t, right, s)
				}
				c := k.c
				c.Text, c.Seeds = []byte(s), seeds
				r = check(t, c)
			})
			return r
		}
		require.Empty(t, run("right", nil, manySeeds()).Findings)
		for name, replace := range k.right {
			require.Empty(t, run(name, replace, manySeeds()).Findings)
		}
		for name, replace := range k.faults {
			r := run(name, replace, 10)
			found := 0
			for _, f := range r.Findings {
				if f.Kind != Race || f.Across != "GPUs" {
					continue
				}
				if pair := [2]string{f.Other.Instruction, f.Access.Instruction}; pair == k.finds ||
					pair == [2]string{k.finds[1], k.finds[0]} {
					found += f.Seeds
				}
			}
			require.GreaterOrEqual(t, found, 9, "%s, %s: %v", k.name, name, r.Findings)
		}
	}
}
