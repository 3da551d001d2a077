package bootstrap

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/stretchr/testify/require"
)

type met struct {
	g   Group
	who *Roster
	err error
}

// meets calls Meet in the background, and returns when the rank is admitted as one of n.
func meets(t *testing.T, ctx context.Context, id ID, rank, size, n int) <-chan met {
	t.Helper()
	c := make(chan met, 1)
	go func() {
		g, who, err := Meet(ctx, id, rank, size, fmt.Append(nil, "card ", rank), JoinOptions{})
		c <- met{g, who, err}
	}()
	if n > 0 {
		require.Eventually(t, func() bool { return taken(id) == n }, 10*time.Second, time.Millisecond)
	}
	return c
}

// groupsOf takes the results of Meet, whose rosters must all be want.
func groupsOf(t *testing.T, want Roster, all ...<-chan met) []Group {
	t.Helper()
	for _, rank := range want.Came {
		want.Cards = append(want.Cards, fmt.Append(nil, "card ", rank))
	}
	var groups []Group
	for i, c := range all {
		m := <-c
		require.NoError(t, m.err)
		require.Equal(t, want, *m.who)
		require.Equal(t, i, m.g.Rank())
		require.Equal(t, len(all), m.g.Size())
		groups = append(groups, m.g)
	}
	meet(t, groups)
	return groups
}

// A rank that does not come in time is left out, whatever its number; when it comes it hears so, as long as the others
// are there.
func TestMeetWithoutSome(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4, 5} { // without a rank in the middle, and the last
		id, _ := hubAt(t)
		a := meets(t, within(t, 20*time.Second), id, 1, size, 1)
		b := meets(t, within(t, 20*time.Second), id, 3, size, 2)
		require.Eventually(t, func() bool { return taken(id) == 2 }, 10*time.Second, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := meets(t, ctx, id, 2, size, 3) // the first to lose patience
		away := map[int]string{0: ""}
		if size == 5 {
			away[4] = ""
		}
		groups := groupsOf(t, Roster{Came: []int{1, 2, 3}, Away: away}, a, c, b)
		for range 2 {
			late := <-meets(t, within(t, 10*time.Second), id, 0, size, 0)
			require.ErrorIs(t, late.err, ErrExcluded)
			require.Regexp(t, `^join: rank 0, process \d+ on .*, comes too late: the others began without it \d+m?s ago$`,
				late.err.Error())
		}
		require.NoError(t, groups[0].Close())
		hasty := <-meets(t, within(t, 300*time.Millisecond), id, 1, size, 0)
		require.ErrorContains(t, hasty.err, "the group before has not ended, rank 1, 2 is in it")
		closeAll(t, groups[1:])
		require.Eventually(t, func() bool { return hubOf(id) == nil }, 10*time.Second, time.Millisecond)
	}
}

// If all come nobody waits.
func TestMeetAll(t *testing.T) {
	id, _ := hubAt(t)
	a := meets(t, within(t, 20*time.Second), id, 1, 2, 1)
	closeAll(t, groupsOf(t, Roster{Came: []int{0, 1}, Away: map[int]string{}},
		meets(t, within(t, 20*time.Second), id, 0, 2, 2), a))
}

// Nobody waits for processes that have ended, before they came or while they waited for the others. A rank that dies
// in the join set may come again.
func TestMeetWithoutTheDead(t *testing.T) {
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Again: true})
	require.NoError(t, err)
	defer Stop(id)
	mortal := func() *link {
		j := bare(id, 3, 4)
		j.partial = true
		l, err := j.enter(within(t, 10*time.Second))
		require.NoError(t, err)
		return l
	}
	l := mortal() // the first that comes
	a := meets(t, within(t, 20*time.Second), id, 0, 4, 2)
	l.close()
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	l = mortal()
	require.Eventually(t, func() bool { return taken(id) == 2 }, 10*time.Second, time.Millisecond)
	b := meets(t, within(t, 20*time.Second), id, 1, 4, 3)
	Gone(id, 2, "exit status 3")
	m, err := l.receive(rendezvous.MaxBody)
	require.NoError(t, err)
	require.Equal(t, map[int]string{2: "its process has ended: exit status 3"}, m.(*rendezvous.Roster).Away)
	l.close()
	first := []met{<-a, <-b}
	require.Equal(t, []int{0, 1, 3}, first[0].who.Came)
	closeAll(t, []Group{first[0].g, first[1].g})

	// The next group at the same ID knows of the ended process.
	require.Eventually(t, func() bool { h := hubOf(id); return h != nil && h.started() == nil }, 10*time.Second,
		time.Millisecond)
	a = meets(t, within(t, 20*time.Second), id, 0, 4, 1)
	l = mortal()
	require.Eventually(t, func() bool { return taken(id) == 2 }, 10*time.Second, time.Millisecond)
	l.close()
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	Gone(id, 1, "killed by signal 9")
	groupsAway := map[int]string{1: "its process has ended: killed by signal 9", 2: "its process has ended: exit status 3",
		3: "its process has ended: exit status 0"}
	Gone(id, 3, "exit status 0")
	closeAll(t, groupsOf(t, Roster{Came: []int{0}, Away: groupsAway}, a))
}

// A rank that is cancelled is away, and the others wait on. When nobody is left the hub waits for ranks as before.
func TestMeetCancelled(t *testing.T) {
	id, _ := hubAt(t)
	quit := func(size, slots int, meanwhile func()) {
		j := bare(id, 0, size)
		j.partial = true
		l, err := j.enter(within(t, 10*time.Second))
		require.NoError(t, err)
		defer l.close()
		require.Eventually(t, func() bool { return taken(id) == slots }, 10*time.Second, time.Millisecond)
		meanwhile()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = j.await(ctx, l)
		require.ErrorContains(t, err, "it was cancelled while it waited")
	}
	quit(3, 1, func() {})
	require.Eventually(t, func() bool { return taken(id) == 0 }, 10*time.Second, time.Millisecond)
	var a <-chan met
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	quit(4, 1, func() { a = meets(t, ctx, id, 1, 4, 2) }) // also of another size
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	Gone(id, 2, "exit status 1")
	Gone(id, 3, "exit status 1")
	Gone(id, 0, "") // a rank that was away may be known to have ended
	closeAll(t, groupsOf(t,
		Roster{Came: []int{1}, Away: map[int]string{0: "its process has ended: ", 2: "its process has ended: exit status 1",
			3: "its process has ended: exit status 1"}}, a))
}

// A rank that calls Join and one that calls Meet get no group.
func TestMeetAndJoin(t *testing.T) {
	id, _ := hubAt(t)
	a := meets(t, within(t, 20*time.Second), id, 0, 2, 1)
	b := <-join(within(t, 20*time.Second), id, 1, 2)
	require.ErrorContains(t, b.err, "start the same program on all")
	require.ErrorContains(t, (<-a).err, "start the same program on all")
	_, _, err := Meet(t.Context(), id, 0, 1, make([]byte, MaxCard+1), JoinOptions{})
	require.ErrorContains(t, err, "a card of 3073 bytes")
}

// A hub that was stopped while ranks waited leaves no timer behind.
func TestMeetStopped(t *testing.T) {
	id, _ := hubAt(t)
	h := hubOf(id)
	ctx, cancel := context.WithCancel(t.Context())
	a := meets(t, ctx, id, 0, 2, 1)
	Stop(id)
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.open == 0
	}, 10*time.Second, time.Millisecond)
	cancel()
	require.Error(t, (<-a).err)
	require.False(t, h.timer.Stop())
}
