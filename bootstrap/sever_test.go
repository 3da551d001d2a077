package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/trace/judge"
)

// Of ranks that live and do not reach each other one end is left out, and hears why.
func TestSever(t *testing.T) {
	link := &Failure{Rank: -1, Culprits: []int{1, 2}, Late: &Lateness{Reason: judge.Link}}
	reset := &Failure{Rank: 2, Culprits: []int{1, 2}, Reason: "connection reset", Path: true}
	once := paths{{"A", "B"}: true}
	for _, tt := range []struct {
		name    string
		failure *Failure
		failed  paths
		homes   string // by rank
		hosts   []int
		dead    []int
		want    []int
	}{
		{"ranks that cannot be told apart", link, nil, "", nil, nil, []int{0, 1, 3}},
		{"machines", link, nil, "AABB", nil, nil, []int{0, 1}},
		{"others are not concerned", link, nil, "CABD", nil, nil, []int{0, 1, 3}},
		{"the end with the lowest rank goes on", link, nil, "BABB", nil, nil, []int{0, 2, 3}},
		{"the end with the hub goes on", link, nil, "AABB", []int{3}, nil, []int{2, 3}},
		{"a connection breaks once", reset, nil, "AABB", nil, nil, []int{0, 1, 2, 3}},
		{"and again", reset, once, "AABB", nil, nil, []int{0, 1}},
		{"and elsewhere", reset, once, "AACC", nil, nil, []int{0, 1, 2, 3}},
		{"the other end has died", link, nil, "AABB", nil, []int{2}, []int{0, 1, 3}},
		{"three wait for each other", &Failure{Rank: -1, Culprits: []int{1, 2, 3}, Late: &Lateness{Reason: judge.Circle}},
			nil, "AABB", nil, nil, []int{0, 1, 2, 3}},
		{"a third rank's word", &Failure{Rank: 3, Culprits: []int{1, 2}}, once, "AABB", nil, nil, []int{0, 1, 2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := map[int]*regrouped{}
				r := newCoordinator(4, tt.hosts, func(to []int, m message) {
					if m, ok := m.(*regrouped); ok {
						for _, q := range to {
							told[q] = m
						}
					}
				})
				r.meet = meetHere
				r.severed.failed = maps.Clone(tt.failed)
				if tt.homes != "" {
					r.severed.homes = [][]string{make([]string, 4), nil}
					for q, name := range tt.homes {
						r.severed.homes[0][q] = string(name)
					}
				}
				r.failure = tt.failure
				for _, q := range tt.dead {
					r.lost(q, "killed")
				}
				for round := uint64(1); round <= 2; round++ { // the new group may not meet, and the ranks ask again
					if round == 2 && len(tt.want) == 4 {
						break // a path counts the second time
					}
					for q := range 4 {
						if !slices.Contains(tt.dead, q) {
							require.True(t, r.hear(q, &regroup{Round: round, Wait: time.Minute}))
						}
					}
					synctest.Wait()
					for q, m := range told {
						require.Equal(t, round, m.Round)
						if slices.Contains(tt.want, q) {
							require.Equal(t, tt.want, m.Members)
							continue
						}
						_, err := newMember(q, 4, nil, nil).regrouping(m)
						require.ErrorIs(t, err, ErrExcluded)
						require.ErrorContains(t, err, "mend the network")
					}
					require.Len(t, told, 4-len(tt.dead))
				}
			})
		})
	}
}

// The next hub knows which paths have failed, whatever numbers the ranks have there.
func TestSeverLater(t *testing.T) {
	id, _ := hubAt(t)
	enter := func(id ID, rank, size, host int) Group {
		g, err := Join(within(t, time.Minute), id, rank, size, JoinOptions{machine: fmt.Sprint("host ", host)})
		require.NoError(t, err)
		return g
	}
	groups, hosts := make([]Group, 4), []int{0, 1, 2, 3}
	var all sync.WaitGroup
	for r := range groups {
		all.Go(func() { groups[r] = enter(id, r, 4, r) })
	}
	all.Wait()
	for _, fail := range []struct {
		how  func()
		left []int // hosts
	}{
		{func() { groups[2].FailWith("reset", 1, false) }, []int{0, 1, 2, 3}},
		{func() { Drop(groups[0]) }, []int{1, 2, 3}},
		{func() { groups[1].FailWith("reset", 0, false) }, []int{1, 3}}, // of hosts 1 and 2
	} {
		fail.how()
		next := make([]Group, len(fail.left))
		for i, host := range hosts {
			if host == 0 && len(next) == 3 {
				continue
			}
			all.Go(func() {
				got, err := groups[i].Regroup(t.Context(), time.Minute)
				if at := slices.Index(fail.left, host); at >= 0 {
					require.NoError(t, err)
					require.Len(t, got.Members, len(next))
					next[at] = enter(got.ID, at, len(next), host)
				} else {
					require.ErrorIs(t, err, ErrExcluded)
					require.ErrorContains(t, err, "ranks 0 and 1 have failed with each other again, so the others leave out rank 1")
				}
			})
		}
		all.Wait()
		closeAll(t, groups)
		groups, hosts = next, fail.left
	}
	closeAll(t, groups)
}
