package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/judge"
)

func TestLosses(t *testing.T) {
	type said = []judge.Testimony
	for _, tt := range []struct {
		name string
		said said
		want judge.Loss
	}{
		{"nobody has lost anybody", said{{From: 0, Hears: []int{1, 2}}}, judge.Loss{}},
		{"two places, one says", said{{From: 0, Lost: []int{1}}}, judge.Loss{Candidates: []int{0, 1}}},
		{"two places, both say", said{{From: 0, Lost: []int{1}}, {From: 1, Lost: []int{0}}},
			judge.Loss{Candidates: []int{0, 1}}},
		{"who has lost all cannot know", said{{From: 0, Lost: []int{1, 2, 3}}}, judge.Loss{Candidates: []int{0, 1, 2, 3}}},
		{"two that hear each other have lost a third", said{{From: 0, Hears: []int{2}, Lost: []int{1}}, {From: 2,
			Lost: []int{1}}}, judge.Loss{Culprits: []int{1}}},
		{"the lost one says so too", said{{From: 1, Lost: []int{0, 2}}, {From: 0, Hears: []int{2}, Lost: []int{1}}, {From: 2,
			Lost: []int{1}}}, judge.Loss{Culprits: []int{1}}},
		{"both ends live", said{{From: 0, Hears: []int{2}, Lost: []int{1}}, {From: 2, Hears: []int{0, 1}}},
			judge.Loss{Path: true, Culprits: []int{0, 1}}},
		{"one end may be alone", said{{From: 0, Hears: []int{2}, Lost: []int{1}}}, judge.Loss{Candidates: []int{0, 1}}},
		{"what one direction carries counts for nothing", said{{From: 0, Hears: []int{2}, Lost: []int{1}}, {From: 1,
			Hears: []int{0, 2}}}, judge.Loss{Path: true, Culprits: []int{0, 1}}},
		{"two are lost to all others", said{{From: 0, Hears: []int{2}, Lost: []int{1, 3}}, {From: 2, Lost: []int{1, 3}}},
			judge.Loss{Candidates: []int{1, 3}}},
		{"two paths", said{{From: 0, Hears: []int{3}, Lost: []int{1, 2}}, {From: 3, Hears: []int{1, 2}}},
			judge.Loss{Candidates: []int{0, 1, 2}}},
		{"itself", said{{From: 0, Hears: []int{0}, Lost: []int{0}}}, judge.Loss{}},
	} {
		require.Equal(t, tt.want, judge.Losses(tt.said), tt.name)
	}
}

func TestElect(t *testing.T) {
	type votes = []judge.Vote
	of := func(r ...int) judge.Vote { return judge.Vote{Culprits: r} }
	between := func(r ...int) judge.Vote { return judge.Vote{Culprits: r, Path: true} }
	for _, tt := range []struct {
		name       string
		votes      votes
		culprits   []int
		candidates []int
	}{
		{"nobody says anything", nil, nil, nil},
		{"one", votes{of(2, 4)}, []int{2, 4}, nil},
		{"sets differ, and one rank is in most", votes{of(2), of(0, 1), of(0, 2), of(0, 3)}, []int{0}, nil},
		{"most say the same", votes{of(2, 4), of(3, 5), of(2, 4)}, []int{2, 4}, nil},
		{"who cannot know has no vote", votes{{Candidates: []int{0, 1, 2}}, {Candidates: []int{0, 2}}, of(0)}, []int{0}, nil},
		{"two names of one path", votes{between(2, 3), between(1, 3), between(1, 3)}, []int{1, 3}, nil},
		{"a path, and one that cannot know", votes{between(2, 3), {Candidates: []int{1, 2}}}, []int{2, 3}, nil},
		{"a path, or one of its ends", votes{between(2, 3), of(3)}, nil, []int{2, 3}},
		{"most name an end of what one takes for a path", votes{between(2, 3), of(3), of(3)}, []int{3}, nil},
		{"one against one", votes{of(2), of(1)}, nil, []int{1, 2}},
		{"nobody can know", votes{{Candidates: []int{0, 2}}, {Candidates: []int{0, 1}}}, nil, []int{0, 1, 2}},
		{"nobody is to blame", votes{{}, {}}, nil, nil},
	} {
		culprits, candidates := judge.Elect(tt.votes)
		require.Equal(t, tt.culprits, culprits, tt.name)
		require.Equal(t, tt.candidates, candidates, tt.name)
	}
}
