package why

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
)

// A given is what a rank gives a call: types and sizes of tensors, "Float 6,100; Float".
type given struct{ kind, in, out string }

// call makes a call of it.
func (g given) call(n int64, state hang.State) hang.Call {
	c := hang.Call{Number: n, Kind: g.kind, Peer: -1, State: state, At: time.Unix(1_700_000_000, n)}
	shape := func(text string) (string, int64) {
		var kinds []string
		var sizes [][]int64
		for tensor := range strings.SplitSeq(text, "; ") {
			kind, dims, _ := strings.Cut(tensor, " ")
			var size []int64
			for d := range strings.SplitSeq(dims, ",") {
				if n, err := strconv.ParseInt(d, 10, 64); err == nil {
					size = append(size, n)
				}
			}
			kinds, sizes, c.Type = append(kinds, kind), append(sizes, size), kind
		}
		return hang.Shape(kinds, sizes)
	}
	c.In, c.Sizes.In = shape(g.in)
	c.Out, c.Sizes.Out = shape(g.out)
	return c
}

// given4 is a job of 4 ranks in a call, in which rank 1 gives something else. With ended, earlier calls differ as much.
func given4(most, one given, absent, ended bool) *hang.Job {
	j := &hang.Job{Groups: []hang.Group{{Name: "0", Desc: "default_pg", Ranks: []int{0, 1, 2, 3}}}}
	for r := range 4 {
		k := j.Rank(r)
		k.Source = "f"
		for n := int64(1); n <= 3; n++ {
			g, state := most, hang.Ended
			if r == 1 && (n == 3 || ended) {
				g = one
			}
			if n == 3 {
				state = hang.Begun
			}
			if n < 3 || r < 3 || !absent {
				k.Calls = append(k.Calls, g.call(n, state))
			}
		}
	}
	return j
}

// Ranks differ where NCCL compares: in the elements that a call hands over, not in the shapes of tensors. What has
// ended before with the same difference is no difference.
func TestElements(t *testing.T) {
	for _, c := range []struct {
		most, one given
		differ    bool
	}{
		{given{"all_reduce", "Float 600", "Float 600"},
			given{"all_reduce", "Float 6,100", "Float 6,100"}, false},
		{given{"all_reduce", "Float 1", "Float 1"}, given{"all_reduce", "Float", "Float"}, false},
		{given{"all_reduce", "Float 0,5", "Float 0,5"}, given{"all_reduce", "Float 7,0", "Float 7,0"}, false},
		{given{"all_reduce", "Bool 8", "Bool 8"}, given{"all_reduce", "Byte 8", "Byte 8"}, false},
		{given{"all_reduce", "Float 600", "Float 600"}, given{"all_reduce", "Float 601", "Float 601"}, true},
		{given{"all_reduce", "Float 600", "Float 600"}, given{"all_reduce", "Int 600", "Int 600"}, true},
		{given{"all_reduce", "Float 1,1,1,1,1,1,1,1,6", "Float 6"},
			given{"all_reduce", "Float 1,1,1,1,1,1,1,1,7", "Float 7"}, true},
		{given{"reduce", "Float 9", "Float 9"}, given{"reduce", "Float 8", "Float 8"}, true},
		{given{"broadcast", "Float 600", "Float 600"}, given{"broadcast", "Byte 2400", "Byte 2400"}, false},
		{given{"broadcast", "Float 600", "Float 600"}, given{"broadcast", "Double 600", "Double 600"}, true},
		{given{"_broadcast_oop", "Float 6", "Float 6"}, given{"broadcast", "Float 6", "Float 6"}, false},
		{given{"_all_gather_base", "Float 600", "Float 2400"},
			given{"_all_gather_base", "Float 6,100", "Float 4,600"}, false},
		{given{"_all_gather_base", "Float 600", "Float 2400"},
			given{"_all_gather_base", "Float 300", "Float 1200"}, true},
		{given{"_reduce_scatter_base", "Float 2400", "Float 600"},
			given{"_reduce_scatter_base", "Float 4,600", "Float 6,100"}, false},
		{given{"_reduce_scatter_base", "Float 2400", "Float 600"},
			given{"_reduce_scatter_base", "Float 1200", "Float 300"}, true},
		{given{"AllGather", "float32 600", "float32 600"},
			given{"AllGather", "float32 601", "float32 601"}, true},
		{given{"_ALLGATHER_BASE", "x 600", "x 2400"}, given{"_ALLGATHER_BASE", "x 601", "x 2404"}, true},
		{given{"all_gather", "Float 5", "Float 5; Float 6"},
			given{"all_gather", "Float 6", "Float 5; Float 6"}, false},
		{given{"all_to_all", "Float 5", "Float 6"}, given{"all_to_all", "Float 7", "Float 2"}, false},
		{given{"allreduce_coalesced", "Float 5; Float 6", "Float 5"},
			given{"allreduce_coalesced", "Float 6", "Float 6"}, false},
		{given{"gather", "Float 5", "Float 6"}, given{"gather", "Float 7", "Float 2"}, false},
	} {
		a := hang.Judge(given4(c.most, c.one, true, false))
		want := map[bool][]int{true: {1}, false: {3}}[c.differ]
		require.Equal(t, want, a.Culprits, "%v: %s", c, a.Sentence)
		a = hang.Judge(given4(c.most, c.one, true, true))
		require.Equal(t, []int{3}, a.Culprits, "%v: %s", c, a.Sentence)
		j := given4(c.most, c.one, false, true) // rank 0 has taken what another sent for another call
		j.Ranks[0].Calls[2].State = hang.Ended
		require.Equal(t, c.differ, hang.Judge(j).Reason == hang.Shapes, "%v", c)
	}
}

// Where a file is missing and either side may be right, the sentence still tells how the sides differ; a file of
// another time is not a missing one.
func TestUnprovenDifferences(t *testing.T) {
	for says, one := range map[string]given{
		"rank 1 called all_reduce #3 of the default group with Float[601], and ranks 0 and 2 with Float[600]": {
			"all_reduce", "Float 601", "Float 601"},
		"rank 1 called all_reduce #3 of the default group with Int[600], and ranks 0 and 2 with Float[600]": {
			"all_reduce", "Int 600", "Int 600"},
		"as collective #3 of the default group rank 1 called barrier, and ranks 0 and 2 all_reduce": {
			"barrier", "Float 600", "Float 600"},
	} {
		j := given4(given{"all_reduce", "Float 600", "Float 600"}, one, true, false)
		j.Ranks[3] = hang.Rank{}
		a := hang.Judge(j)
		require.Equal(t, "I cannot say which side is right, because the file of rank 3 is missing: "+says, a.Sentence)
		require.Empty(t, a.Culprits)
	}
	most := given{"broadcast", "Float 600", "Float 600"}
	j := given4(most, most, true, false)
	for r := range 3 {
		j.Ranks[r].Calls[2].Root = 1
	}
	j.Ranks[1].Calls[2].Root = 2
	j.Ranks[3] = hang.Rank{}
	require.Contains(t, hang.Judge(j).Sentence, "rank 1 called broadcast #3 of the default group with root 1, and ranks 0 "+
		"and 2 with root 0")

	j = given4(most, given{"broadcast", "Float 601", "Float 601"}, true, false)
	for r := range 4 {
		j.Ranks[r].Build = map[bool]string{true: "NCCL 2.26", false: "NCCL 2.27"}[r == 3]
	}
	a := hang.Judge(j)
	require.Contains(t, a.Sentence, "because the file of rank 3 is of another time: rank 1 called broadcast #3")
	require.NotContains(t, a.Remedy, "has written none")
}

// Kinds of calls that have ended together before are no difference either.
func TestKindsMet(t *testing.T) {
	one, other := given{"all_reduce", "Float 1", "Float 1"}, given{"all_reduce_barrier", "Float 1", "Float 1"}
	require.Equal(t, hang.Different, hang.Judge(given4(one, other, true, false)).Reason)
	a := hang.Judge(given4(one, other, true, true))
	require.Equal(t, []int{3}, a.Culprits, a.Sentence)
}

// Where nothing else explains a hang, differences that NCCL does not look at are said, and accuse nobody.
func TestLooseDifferences(t *testing.T) {
	for _, c := range []struct {
		most, one given
		note      string
	}{
		{given{"gather", "Float 5", "Float 5"}, given{"gather", "Float 7", "Float 7"},
			"rank 1 called gather #3 of the default group with Float[7], and ranks 0, 2 and 3 with Float[5]; NCCL does not"},
		{given{"broadcast", "Float 5", "Float 5"}, given{"broadcast", "Int 5", "Int 5"}, "with Int[5]"},
		{given{"all_to_all", "Float 4", "Float 4"}, given{"all_to_all", "Float 5", "Float 4"},
			"in all_to_all #3 of the default group ranks send 17 elements and receive 16 together; NCCL does not"},
		{given{"all_to_all", "Float 4", "Float 4"}, given{"all_to_all", "Float 5", "Float 5"}, ""},
	} {
		a := hang.Judge(given4(c.most, c.one, false, false))
		require.Equal(t, hang.Stuck, a.Reason, a.Sentence)
		require.Empty(t, a.Culprits)
		require.Contains(t, strings.Join(a.Notes, "\n"), c.note)
		require.Len(t, a.Notes, map[bool]int{true: 1}[c.note != ""], a.Notes)
	}
}

// Calls of a coalesced group are compared one by one.
func TestCoalescedElements(t *testing.T) {
	big, small := given{"all_reduce", "Float 8", "Float 8"}, given{"all_reduce", "Float 2", "Float 2"}
	for _, c := range []struct {
		one  []given
		want []int
	}{{[]given{big, small}, []int{3}}, {[]given{small, small}, []int{1}}, {[]given{small}, []int{1}}} {
		j := given4(big, big, true, false)
		for r := range 3 {
			calls := []given{big, small}
			if r == 1 {
				calls = c.one
			}
			j.Ranks[r].Calls = j.Ranks[r].Calls[:2]
			for _, g := range calls {
				j.Ranks[r].Calls = append(j.Ranks[r].Calls, g.call(3, hang.Begun))
			}
		}
		a := hang.Judge(j)
		require.Equal(t, c.want, a.Culprits, "%v: %s", c.one, a.Sentence)
	}
}

// A message is compared by bytes, and not at all if one of these lengths has arrived before.
func TestMessageElements(t *testing.T) {
	job := func(sent, received given, before bool) *hang.Job {
		j := &hang.Job{Groups: []hang.Group{{Name: "0", Ranks: []int{0, 1, 2}}}}
		for r, g := range []given{sent, received} {
			k := j.Rank(r)
			k.Source = "f"
			for n := int64(1); n <= 2; n++ {
				c := g.call(n, hang.Begun)
				if c.Peer, c.Send = 1-r, r == 0; n == 1 {
					c.State = hang.Ended
				}
				if n == 2 || before {
					k.Calls = append(k.Calls, c)
				}
			}
		}
		return j
	}
	for _, c := range []struct {
		sent, received string
		before         bool
		differ         bool
	}{
		{"Float 6,2", "Float 12", false, false}, {"Float 12", "Byte 48", false, false},
		{"Float 12", "Float 13", false, true}, {"Float 12", "Float 13", true, false}, {"Float 12", "Byte 12", false, true},
	} {
		sent, received := given{"send", c.sent, c.sent}, given{"recv", c.received, c.received}
		a := hang.Judge(job(sent, received, c.before))
		require.Equal(t, c.differ, a.Reason == hang.Shapes, "%v: %s", c, a.Sentence)
	}
}
