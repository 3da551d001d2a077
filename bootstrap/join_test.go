package bootstrap

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// hubAt serves a new ID on loopback, with its log.
func hubAt(t testing.TB) (ID, *transcript.Transcript) {
	t.Helper()
	log := new(transcript.Transcript)
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { Stop(id) })
	return id, log
}

type joined struct {
	g   Group
	err error
}

// join joins in the background.
func join(ctx context.Context, id ID, rank, size int) <-chan joined {
	c := make(chan joined, 1)
	go func() {
		g, err := Join(ctx, id, rank, size, JoinOptions{})
		c <- joined{g, err}
	}()
	return c
}

func TestMissingRanks(t *testing.T) {
	t.Parallel()
	id, _ := hubAt(t)
	var all []<-chan joined
	for _, r := range []int{0, 1, 2, 5, 6} {
		all = append(all, join(within(t, 20*time.Second), id, r, 8))
	}
	require.Eventually(t, func() bool { return taken(id) == 5 }, 10*time.Second, time.Millisecond)
	// The first to lose patience speaks for all.
	all = append(all, join(within(t, time.Second), id, 4, 8))
	for _, c := range all {
		j := <-c
		require.Regexp(t, `^join: 2 of 8 ranks did not come within \d+m?s: 3, 7 \(joined: 0-2, 4-6\); start them or raise RINGO_JOIN_TIMEOUT$`, j.err.Error())
		require.ErrorIs(t, j.err, context.DeadlineExceeded)
		var e *JoinError
		require.ErrorAs(t, j.err, &e)
		require.Equal(t, []int{3, 7}, e.Missing)
	}
	late := <-join(within(t, 10*time.Second), id, 3, 8)
	require.ErrorContains(t, late.err, "2 of 8 ranks did not come", "who comes too late hears why")
}

func TestNobodyThere(t *testing.T) {
	id, err := randomID(freeport.Addr(t))
	require.NoError(t, err)
	_, err = Join(within(t, 100*time.Millisecond), id, 1, 2, JoinOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Regexp(t, "no answer from "+regexp.QuoteMeta(id.Addr())+` within \d+ms `, err.Error())
	require.ErrorContains(t, err, "is rank 0 running")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Join(ctx, id, 1, 2, JoinOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// A loopback interface that is down is not waited for until the deadline; another network may come back.
func TestNoLoopback(t *testing.T) {
	for ip, final := range map[string]bool{"127.0.0.1": true, "10.0.0.1": false} {
		synctest.Test(t, func(t *testing.T) {
			id, err := randomID(ip + ":1234")
			require.NoError(t, err)
			begun := time.Now()
			_, err = Join(t.Context(), id, 1, 2, JoinOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234},
					Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
			}})
			if final {
				require.ErrorIs(t, err, syscall.ENETUNREACH)
				require.ErrorContains(t, err,
					"join: dial tcp 127.0.0.1:1234: connect: network is unreachable: loopback is down in this network namespace: "+
						"bring it up (ip link set lo up), or")
				require.Less(t, time.Since(begun), 2*loopbackTime)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	tests := []struct {
		name       string
		rank, size int
		want       string
	}{
		{"same rank", 0, 3, `^join: process \d+ on \S+ joins as rank 0 again \(the process that serves, then the process that serves\): it must Close the first group before, or have another ID$`},
		{"sizes differ", 1, 4,
			`^join: rank 1, process .*, says there are 4 ranks, but rank 0, process .*, says 3: start all with one RINGO_SIZE$`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, log := hubAt(t)
			first := join(within(t, 10*time.Second), id, 0, 3)
			require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
			second := join(within(t, 10*time.Second), id, tt.rank, tt.size)
			for _, c := range []<-chan joined{first, second} {
				require.Regexp(t, tt.want, (<-c).err.Error())
			}
			require.NotEmpty(t, log.String())
		})
	}
	_, err := Join(t.Context(), ID{}, 0, 1, JoinOptions{})
	require.ErrorContains(t, err, "id: empty")
	id, _ := hubAt(t)
	_, err = Join(t.Context(), id, 2, 2, JoinOptions{})
	require.ErrorContains(t, err, "rank 2 of 2")
}

func TestTwoProcessesClaim(t *testing.T) {
	var l joinSet
	require.Nil(t, l.add(&slot{Claim: rendezvous.Claim{Rank: 1, Size: 2, Pid: 7, Host: "a"}, from: "x:1"}))
	for _, c := range []rendezvous.Claim{{Rank: 1, Size: 2, Pid: 7, Host: "b"}, {Rank: 1, Size: 2, Pid: 8, Host: "a"}} {
		no := l.add(&slot{Claim: c, from: "x:2"})
		require.Equal(t, fmt.Sprintf("two processes claim rank 1: process 7 on a (x:1) and process %d on %s (x:2): give "+
			"each its own RINGO_RANK, or if they are two jobs, each job its own address", c.Pid, c.Host), no.Reason)
	}
}

// A rank that joins again before the others have left waits for them, then has a new group.
func TestJoinAgain(t *testing.T) {
	id, err := randomID(freeport.Addr(t))
	require.NoError(t, err)
	require.NoError(t, Serve(id, ListenOptions{}))
	defer Stop(id)
	first := enter(t, id, 2, plainly)
	require.NoError(t, first[0].Close())
	require.NoError(t, Serve(id, ListenOptions{}))
	hasty := <-join(within(t, 300*time.Millisecond), id, 0, 2)
	require.ErrorContains(t, hasty.err, "the group before has not ended, rank 1 is in it; every rank must Close it")
	a := join(within(t, 10*time.Second), id, 0, 2)
	require.NoError(t, first[1].Close())
	b := join(within(t, 10*time.Second), id, 1, 2)
	second := []Group{(<-a).g, (<-b).g}
	meet(t, second)
	require.NotEqual(t, first[0].Key(), second[0].Key())
	closeAll(t, second)
	require.Eventually(t, func() bool { return hubOf(id) == nil }, 10*time.Second, time.Millisecond)
}

// A rank whose process has ended cannot come: ranks that wait for it hear so, also
// ranks that come later, and also from the next hub.
func TestGone(t *testing.T) {
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Again: true})
	require.NoError(t, err)
	defer Stop(id)
	j := join(within(t, 10*time.Second), id, 0, 3)
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	Gone(id, 7, "of no interest to a group of 3")
	Gone(id, 2, "exit status 3")
	const want = "join: rank 2 will not come, for its process has ended: exit status 3"
	check := func(j joined) {
		require.EqualError(t, j.err, want)
		var f *Failure
		require.ErrorAs(t, j.err, &f)
		require.Equal(t, Failure{Rank: 2, Culprits: []int{2}, Died: true, Reason: "while joining"}, *f)
	}
	check(<-j)
	check(<-join(within(t, 10*time.Second), id, 1, 3))
	h := hubOf(id)
	h.stop()
	require.NotSame(t, h, hubOf(id))
	check(<-join(within(t, 10*time.Second), id, 1, 3))
}

func taken(id ID) int {
	h := hubOf(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// Each rank that uses an ID twice hears why at once, although the hub listens no more. After it has left the first
// group, or that has ended, it waits for the next one.
func TestJoinTwice(t *testing.T) {
	id, _ := hubAt(t)
	groups := enter(t, id, 2, plainly)
	hubOf(id).closeListener()
	for r := range groups {
		again := <-join(within(t, time.Minute), id, r, 2)
		require.ErrorContains(t, again.err, fmt.Sprintf("joins as rank %d again: it must Close the first group before", r))
	}
	groups[0].Leave()
	closed := <-join(within(t, 50*time.Millisecond), id, 0, 2)
	require.ErrorIs(t, closed.err, context.DeadlineExceeded)
	Stop(id)
	ended := <-join(within(t, 50*time.Millisecond), id, 1, 2)
	require.ErrorIs(t, ended.err, context.DeadlineExceeded)
	closeAll(t, groups)
}

// The error after the deadline says what was seen: who hangs up and has ended may have had our key.
func TestUnanswered(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	hungUp, refused := fmt.Errorf("%w (EOF)", auth.ErrHungUp), fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for _, tt := range []struct {
		met, last error
		want      string
	}{
		{nil, refused, "is rank 0 running"},
		{hungUp, hungUp, "did not prove that it has our key"},
		{auth.ErrKey, refused, "did not prove that it has our key"},
		{hungUp, refused, "its process has ended, and may have said why"},
	} {
		j := bare(ID{}, 0, 2)
		j.met = tt.met
		require.ErrorContains(t, j.unanswered(ctx, tt.last), tt.want)
	}
}

func TestLateComerDoesNotDisturb(t *testing.T) {
	id, log := hubAt(t)
	groups := enter(t, id, 2, plainly)
	_, err := bare(id, 1, 2).enter(within(t, 10*time.Second))
	require.ErrorContains(t, err, "joins as rank 1 again")
	require.Contains(t, log.String(), "late comer refused")
	meet(t, groups)
	closeAll(t, groups)
}

func TestOtherKey(t *testing.T) {
	id, log := hubAt(t)
	wrong, err := makeID(id.Addr(), make([]byte, keyLen))
	require.NoError(t, err)
	_, err = Join(within(t, 100*time.Millisecond), wrong, 0, 2, JoinOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no rendezvous of this job at "+id.Addr())
	require.ErrorContains(t, err, "another RINGO_COMM_SECRET")
	require.Contains(t, log.String(), "another key")

	j := <-join(within(t, 100*time.Millisecond), id, 0, 2)
	require.ErrorContains(t, j.err, "connections with another key were turned away")
}

func TestCancelledWhileWaiting(t *testing.T) {
	id, _ := hubAt(t)
	other := join(within(t, 10*time.Second), id, 0, 3)
	quitter := bare(id, 1, 3)
	l, err := quitter.enter(within(t, 10*time.Second))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return taken(id) == 2 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = quitter.await(ctx, l)
	require.ErrorIs(t, err, context.Canceled)
	l.close()
	j := <-other
	var f *Failure
	require.ErrorAs(t, j.err, &f)
	require.Equal(t, 1, f.Rank)
	require.ErrorContains(t, j.err, "rank 1, process")
	require.ErrorContains(t, j.err, "was cancelled while it waited")
}

// TestLastWillNotCome: the group starts by the claim of a rank that then does not come; the others hear of its failure
// all the same.
func TestLastWillNotCome(t *testing.T) {
	id, _ := hubAt(t)
	other := join(within(t, 10*time.Second), id, 0, 2)
	require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := &Failure{Rank: 1, Culprits: []int{1}, Reason: "disk full"}
	cancel(why)
	g, err := Join(ctx, id, 1, 2, JoinOptions{})
	require.Nil(t, g)
	require.ErrorIs(t, err, why)
	j := <-other
	if j.err == nil { // the group has started
		defer j.g.Close()
		f := awaitFailure(t, j.g)
		require.Equal(t, []int{1}, f.Culprits)
		require.Contains(t, f.Reason, "disk full")
		return
	}
	require.ErrorContains(t, j.err, "rank 1 will not come")
	require.ErrorContains(t, j.err, "disk full")
}

func TestDeathWhileWaiting(t *testing.T) {
	id, _ := hubAt(t)
	l, err := bare(id, 2, 3).enter(t.Context())
	require.NoError(t, err)
	other := join(within(t, 10*time.Second), id, 0, 3)
	require.Eventually(t, func() bool { return taken(id) == 2 }, 10*time.Second, time.Millisecond)
	l.close()
	err = (<-other).err
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, 2, f.Rank)
	require.True(t, f.Died)
	require.ErrorContains(t, err, "died while it waited for the others")
}

// A rank that has been let in hears that the hub ends. One that had not yet read so calls a hub that is not there.
func TestHubEndsWhileWaiting(t *testing.T) {
	for range 5 {
		id, _ := hubAt(t)
		j := join(within(t, 2*time.Second), id, 0, 2)
		require.Eventually(t, func() bool { return taken(id) == 1 }, 10*time.Second, time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		Stop(id)
		err := (<-j).err
		if strings.Contains(err.Error(), "connection refused") {
			continue
		}
		require.ErrorContains(t, err, "the process that serves the rendezvous died")
		return
	}
	t.Fatal("no rank has heard in time that it is let in")
}

func TestHubEndsLater(t *testing.T) {
	groups := joinAll(t, 3)
	for _, h := range hubsNow() {
		Stop(h)
	}
	for _, g := range groups {
		f := awaitFailure(t, g)
		require.Equal(t, 0, f.Rank, "the first rank of the hub's process")
		require.True(t, f.Died)
	}
	closeAll(t, groups)
}

func hubsNow() (ids []ID) {
	hubs := allHubs.In(nil)
	hubs.Lock()
	defer hubs.Unlock()
	for id := range hubs.m {
		ids = append(ids, id)
	}
	return ids
}

func TestHubEndsByItself(t *testing.T) {
	groups := joinAll(t, 3)
	require.Len(t, hubsNow(), 1)
	closeAll(t, groups)
	require.Eventually(t, func() bool { return len(hubsNow()) == 0 }, 10*time.Second, time.Millisecond)
}

func TestHubWithoutRanksEnds(t *testing.T) {
	_, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Timeout: 10 * time.Millisecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(hubsNow()) == 0 }, 10*time.Second, time.Millisecond)
}

// Two jobs may be given one port: each hub turns the other job's ranks away, with a warning, until they reach their
// own hub.
func TestTwoJobsAtOnePort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel shares a port between listeners")
	}
	log := new(transcript.Transcript)
	addr := freeport.Addr(t)
	const jobs, size = 2, 4
	var all [jobs][]<-chan joined
	for j := range jobs {
		id, err := NewID(ListenOptions{Addr: addr, Log: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		t.Cleanup(func() { Stop(id) })
		for r := range size {
			all[j] = append(all[j], join(within(t, 20*time.Second), id, r, size))
		}
	}
	var groups []Group
	for j := range jobs {
		for r := range size {
			one := <-all[j][r]
			require.NoError(t, one.err)
			groups = append(groups, one.g)
		}
	}
	require.NotEqual(t, groups[0].Key(), groups[size].Key())
	for _, g := range groups {
		g.Close()
	}
}

// Successive jobs take one port at once.
func TestServeAgain(t *testing.T) {
	id, err := randomID(freeport.Addr(t))
	require.NoError(t, err)
	var keys [][]byte
	for range 5 {
		require.NoError(t, Serve(id, ListenOptions{}))
		require.NoError(t, Serve(id, ListenOptions{}), "twice is once")
		groups := enter(t, id, 2, plainly)
		require.NotContains(t, keys, groups[0].Key(), "every group has its own key")
		keys = append(keys, groups[0].Key())
		closeAll(t, groups)
		Stop(id)
	}
}

func TestServeRefuses(t *testing.T) {
	require.ErrorContains(t, Serve(ID{}, ListenOptions{}), "id: empty")
	l, err := net.Listen("tcp", "127.0.0.1:0") // without SO_REUSEPORT
	require.NoError(t, err)
	defer l.Close()
	id, err := randomID(l.Addr().String())
	require.NoError(t, err)
	require.ErrorContains(t, Serve(id, ListenOptions{}), "address already in use")
	_, err = NewID(ListenOptions{Addr: "nonsense"})
	require.Error(t, err)
}

func TestAddresses(t *testing.T) {
	tests := []struct{ name, addr, host string }{
		{"chosen", "", outwardIP().String()},
		{"every interface", "0.0.0.0:0", outwardIP().String()},
		{"no host", ":0", outwardIP().String()},
		{"loopback", "127.0.0.1:0", "127.0.0.1"},
		{"a name", "localhost:0", "localhost"},
		{"IPv6", "[::1]:0", "::1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := NewID(ListenOptions{Addr: tt.addr})
			if err != nil && tt.name == "IPv6" {
				t.Skip("no IPv6 here:", err)
			}
			require.NoError(t, err)
			defer Stop(id)
			host, _, err := net.SplitHostPort(id.Addr())
			require.NoError(t, err)
			require.Equal(t, tt.host, host)
			j := <-join(within(t, 10*time.Second), id, 0, 1)
			require.NoError(t, j.err)
			require.NoError(t, j.g.Close())
		})
	}
}

// Strangers of every sort come all the time while 16 ranks join and work.
func TestStrangers(t *testing.T) {
	id, log := hubAt(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	frames := []message{&rendezvous.Welcome{}, &rendezvous.Part{Data: make([]byte, 100)}, &rendezvous.Start{Head: -1}}
	strangers := []func(c net.Conn){
		func(c net.Conn) {}, // a port scanner
		func(c net.Conn) { c.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
		func(c net.Conn) { b := make([]byte, 4096); fillRandom(b); c.Write(b) },
		func(c net.Conn) { c.Write(greeting(protocol)[:20]) },                           // half a greeting
		func(c net.Conn) { c.Write(greeting(protocol)); drain(c) },                      // no proof
		func(c net.Conn) { c.Write(rendezvous.Encode(frames[rand.IntN(len(frames))])) }, // no greeting
		func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) },                              // reset
		func(c net.Conn) { // a claim that guesses
			auth.Call(c, []byte("guess"), protocol, rendezvous.Append(nil, &rendezvous.Claim{Rank: 0, Size: 16}))
		},
	}
	for _, stranger := range strangers {
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := net.DialTimeout("tcp", id.Addr(), time.Second)
				if err != nil {
					return // the listener is closed
				}
				stranger(c)
				c.Close()
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	groups := enter(t, id, 16, plainly)
	for range 10 {
		meet(t, groups)
	}
	cancel()
	wg.Wait()
	closeAll(t, groups)
	require.Contains(t, log.String(), "stranger dropped")
	require.Less(t, bytes.Count([]byte(log.String()), []byte("\n")), 25, "lines are limited")
}

func drain(c net.Conn) {
	c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	c.Read(make([]byte, 1000))
}

func fillRandom(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
}

// Silent connections, more than maxUnproven, do not keep ranks out.
func TestSlowStrangers(t *testing.T) {
	id, _ := hubAt(t)
	var first net.Conn
	for range maxUnproven + 50 {
		c, err := net.Dial("tcp", id.Addr())
		require.NoError(t, err)
		defer c.Close()
		c.Write(greeting(protocol)[:1]) // and nothing more
		first = cmp.Or(first, c)
	}
	first.SetReadDeadline(time.Now().Add(handshakeTime / 2))
	_, err := first.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the oldest has made room")
	closeAll(t, enter(t, id, 2, plainly))
}

// A caller that breaks off at any byte of its greeting is a stranger.
func TestTruncatedGreeting(t *testing.T) {
	id, _ := hubAt(t)
	whole := greeting(protocol)
	for i := range whole {
		c, err := net.Dial("tcp", id.Addr())
		require.NoError(t, err)
		c.Write(whole[:i])
		c.Close()
	}
	require.Zero(t, taken(id))
	j := <-join(within(t, 10*time.Second), id, 0, 1)
	require.NoError(t, j.err)
	require.NoError(t, j.g.Close())
}

// A rank that breaks off at any byte later has died.
func TestTruncatedWord(t *testing.T) {
	whole := rendezvous.Encode(&rendezvous.Part{Data: []byte("data")})
	for i := range whole {
		id, _ := hubAt(t)
		other := join(within(t, 10*time.Second), id, 0, 2)
		l, err := bare(id, 1, 2).enter(within(t, 10*time.Second))
		require.NoError(t, err)
		m, err := l.receive(rendezvous.MaxBody)
		require.NoError(t, err)
		require.IsType(t, &rendezvous.Start{}, m)
		_, err = l.conn.Write(whole[:i])
		require.NoError(t, err)
		l.close()
		g := (<-other).g
		f := awaitFailure(t, g)
		require.Equal(t, 1, f.Rank)
		require.True(t, f.Died)
		require.NoError(t, g.Close())
	}
}

// bare is a rank that can be made to misbehave.
func bare(id ID, rank, size int) *joiner {
	return &joiner{id: id, rank: rank, size: size, log: slog.New(slog.DiscardHandler), since: time.Now()}
}

func TestProtocolBreach(t *testing.T) {
	tests := []struct {
		name string
		m    message
	}{
		{"out of sequence", &rendezvous.Part{Seq: 5}},
		{"the hub's word", &rendezvous.Gathered{}},
		{"more calls than come", &rendezvous.Withdraw{Seq: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			groups := joinAll(t, 2)
			groups[1].(*member).uplink.up(tt.m)
			f := awaitFailure(t, groups[0])
			require.Equal(t, 1, f.Rank)
			require.Contains(t, f.Reason, "it sent what it must not")
			closeAll(t, groups)
		})
	}
}

func TestDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts /proc/self/fd")
	}
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(e)
	}
	closeAll(t, joinAll(t, 2)) // whatever is opened once
	before := count()
	for i := range 5 {
		groups := joinAll(t, 8)
		if i%2 == 0 {
			Drop(groups[i])
		}
		closeAll(t, groups)
	}
	require.Eventually(t, func() bool { return count() <= before }, 10*time.Second, 5*time.Millisecond)
}

func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		ranks []int
		want  string
	}{
		{nil, ""}, {[]int{3}, "3"}, {[]int{3, 4}, "3, 4"}, {[]int{0, 1, 2, 4, 5, 6, 9}, "0-2, 4-6, 9"},
	} {
		require.Equal(t, tt.want, rendezvous.Ranges(tt.ranks))
	}
	var odd []int
	for r := 1; r < rendezvous.MaxRanks; r += 2 {
		odd = append(odd, r)
	}
	require.Less(t, len(rendezvous.Ranges(odd)), rendezvous.MaxText/2)
}

func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				closeAll(b, joinAll(b, n))
			}
		})
	}
}

func BenchmarkAllGather(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			groups := k.make(b, 8)
			b.ResetTimer()
			each(groups, func(g Group) {
				for range b.N {
					if _, err := g.AllGather(b.Context(), make([]byte, 256)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			closeAll(b, groups)
		})
	}
}

// A rank whose process serves the ID meets itself without a name or a route, and hears soon that the address is another
// host's.
func TestServeWithoutName(t *testing.T) {
	for _, host := range []string{"name-of-nobody.invalid", "192.0.2.1"} { // an address for documentation
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			_, port, err := net.SplitHostPort(freeport.Addr(t))
			require.NoError(t, err)
			id, err := randomID(net.JoinHostPort(host, port))
			require.NoError(t, err)
			require.NoError(t, Serve(id, ListenOptions{}))
			defer Stop(id)
			here, err := makeID("127.0.0.1:"+port, id.key()) // rank 1 knows the name
			require.NoError(t, err)
			zero := join(within(t, time.Minute), id, 0, 2)
			if net.ParseIP(host) != nil {
				err := (<-zero).err
				require.ErrorContains(t, err, "join: 192.0.2.1:"+port+" is no address of this host")
				require.ErrorContains(t, err, "set RINGO_COMM_ID")
				require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
				return
			}
			one := <-join(within(t, time.Minute), here, 1, 2)
			require.NoError(t, one.err)
			groups := []Group{(<-zero).g, one.g}
			meet(t, groups)
			closeAll(t, groups)

			require.NoError(t, Serve(id.Derive("alone"), ListenOptions{}))
			defer Stop(id.Derive("alone"))
			alone := <-join(within(t, 300*time.Millisecond), id.Derive("alone"), 0, 2)
			require.ErrorContains(t, alone.err, "no other process has come to "+id.Addr())
		})
	}
}
