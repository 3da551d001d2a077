package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// joined are the jobs of some ranks that join over TCP a job of size ranks.
func joined(t *testing.T, size int, timeout time.Duration, ranks ...int) ([]*job, []error) {
	t.Helper()
	addr := freeport.Addr(t)
	jobs, errs := make([]*job, len(ranks)), make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() {
			host := []string{"a", "b", "c", "d"}[r]
			jobs[i], errs[i] = join(t.Context(), joinOptions{Timeout: timeout, Host: host,
				Spec: &bootstrap.Spec{Rank: r, Size: size, Addr: addr, Secret: "a test's"}})
		})
	}
	wg.Wait()
	return jobs, errs
}

// inTime has ranks meet, and wait for others that never come. It takes ever more patience, until those that come have
// come in time: the machine may stop for a while.
func inTime(t *testing.T, meet func(patience time.Duration) ([]*job, []error)) ([]*job, time.Duration) {
	t.Helper()
	for patience := 500 * time.Millisecond; ; patience *= 4 {
		jobs, errs := meet(patience)
		missed := false
		for i, j := range jobs {
			missed = missed || errs[i] != nil || len(j.Live()) < len(jobs)
		}
		if !missed {
			return jobs, patience
		}
		for _, j := range jobs {
			if j != nil {
				require.NoError(t, j.Close())
			}
		}
		require.Less(t, patience, 30*time.Second, "%v", errs)
		t.Logf("again, after %v within %v", errs, patience)
	}
}

// Ranks meet over TCP and carry out a check.
func TestJoin(t *testing.T) {
	jobs, errs := joined(t, 3, 30*time.Second, 0, 1, 2)
	require.Equal(t, []error{nil, nil, nil}, errs)
	r, errs := runAll(t, jobs, config{Stages: []stage{gathers("first", fine)}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Empty(t, r.Findings)
	require.Len(t, r.Of("first", "heard"), 3)
	require.Equal(t, ringo.Version, r.Of(rendezvous, "ringo")[2].Text)
}

// A host that has another version of ringo is named, also one whose version does not say so.
func TestAnotherVersion(t *testing.T) {
	jobs := local("a", "a", "b", "c", "d")
	for _, j := range jobs {
		for r, version := range []string{"9.1", "9.1", "9.1", "", "9.1"} {
			j.members[r].Version = version
		}
	}
	r, _ := runAll(t, jobs, config{Stages: []stage{gathers("first", fine)}})
	require.Equal(t, []string{"version-differs host c"}, codes(r))
	require.Equal(t, "its ringo is of an older version, and 9.1 on 3 of 4 hosts: install one version everywhere, for "+
		"ranks of different ones may not understand each other", r.Findings[0].Text)
	require.Equal(t, degraded, r.Verdict)
}

// launched are the jobs of ranks whose launcher serves the rendezvous.
func launched(t *testing.T, size int, timeout time.Duration, hosts []string, connect time.Duration,
	ranks ...int) (bootstrap.ID, func() ([]*job, []error)) {
	t.Helper()
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: "127.0.0.1:0", Again: true})
	require.NoError(t, err)
	t.Cleanup(func() { bootstrap.Stop(id) })
	jobs, errs := make([]*job, len(ranks)), make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() {
			jobs[i], errs[i] = join(t.Context(), joinOptions{Timeout: timeout, Host: fmt.Sprint("host", r), Hosts: hosts,
				connect: connect, Spec: &bootstrap.Spec{Rank: r, Size: size, Addr: id.String()}})
		})
	}
	return id, func() ([]*job, []error) { wg.Wait(); return jobs, errs }
}

// Where the launcher serves the rendezvous any rank may be missing, rank 0 too: the lowest that has come leads. One
// that comes when the others have begun is told so, and does not disturb them.
func TestJoinLate(t *testing.T) {
	tier.Long(t)
	t.Parallel() // it waits
	var id bootstrap.ID
	jobs, patience := inTime(t, func(patience time.Duration) ([]*job, []error) {
		var wait func() ([]*job, []error)
		id, wait = launched(t, 8, patience, []string{"h0", "h0", "h1", "h1", "h2", "h2", "h3", "h3"}, 0, 2, 3, 5, 6, 7)
		bootstrap.Gone(id, 4, "exit status 7")
		return wait()
	})
	require.True(t, jobs[0].First())
	_, err := join(t.Context(), joinOptions{Timeout: 20 * time.Second, Host: "host1", late: 100 * time.Millisecond,
		Spec: &bootstrap.Spec{Rank: 1, Size: 8, Addr: id.String()}})
	no, ok := errors.AsType[*absentError](err)
	require.True(t, ok, "%v", err)
	require.Regexp(t, "^host host1, rank 1: it was not checked: rank 1, process .*, comes too late: the others began "+
		"without it", no.Error())
	over := make(chan struct{})
	go func() { defer close(over); no.Wait(t.Context()) }()
	r, errs := runAll(t, jobs, config{Stages: []stage{gathers("first", func(*job) error {
		select {
		case <-over:
			return errors.New("the late one has not waited for the others")
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	})}})
	<-over
	require.Equal(t, make([]error, 5), errs)
	require.Equal(t, []string{"absent host h0, ranks 0, 1", "absent host h2, rank 4"}, codes(r))
	require.Contains(t, r.Findings[0].Text,
		fmt.Sprintf("did not come within %v: is the host up, and the process started? can it reach the others, who met at %s",
			patience, id.Addr()))
	require.Equal(t, "its process has ended: exit status 7; look into its output", r.Findings[1].Text)
	require.Equal(t, broken, r.Verdict)
	require.Len(t, r.Of("first", "heard"), 5)
}

// A rank that is stopped when it has come to the rendezvous is named, and the others go on; if it leads, they say so.
func TestJoinStopped(t *testing.T) {
	tier.Long(t)
	t.Parallel() // it waits
	var all sync.WaitGroup
	defer all.Wait() // there may be few processors
	one := func(stopped int) {
		// Its process is there and says nothing more: a connection to nowhere leads to it.
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		id, wait := launched(t, 2, time.Minute, nil, 100*time.Millisecond, 1-stopped)
		card, err := json.Marshal(profile{Host: "still", ID: "still", Where: []string{ln.Addr().String()}})
		require.NoError(t, err)
		g, _, err := bootstrap.Meet(t.Context(), id, stopped, 2, card, bootstrap.JoinOptions{})
		require.NoError(t, err)
		defer g.Close()
		jobs, errs := wait()
		if stopped == 0 {
			require.IsType(t, &absentError{}, errs[0])
			require.Regexp(t, `^host still, rank 0: it leads the check, and host host1, rank 1 cannot reach it: .*; is its process stopped, or a port closed\?$`, errs[0].Error())
			return
		}
		require.NoError(t, errs[0])
		r, errs := runAll(t, jobs, config{Stages: []stage{gathers("first", fine)}})
		require.Equal(t, []error{nil}, errs)
		require.Equal(t, []string{"cut-off host host0 to host still"}, codes(r))
		require.Regexp(t, "^cut off in stage rendezvous: .*: it came, and made no connection to host host0, rank 0 at .* within "+
			"100ms; no third host can tell which of them is cut off", r.Findings[0].Text)
		require.Equal(t, 1.0, r.Of("first", "heard")[0].Value)
	}
	all.Go(func() { one(0) })
	all.Go(func() { one(1) })
}

// Under the variables of launchers for which rank 0 serves: the others go on without the rank that is not there, and
// name its host where the launcher says it. Without rank 0 there is nobody to meet: the others name its host.
func TestJoinWithoutOne(t *testing.T) {
	tier.Long(t)
	t.Parallel() // it waits
	for _, c := range []struct{ vars, rank, host string }{
		{"WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 TORCHELASTIC_RUN_ID=x RINGO_COMM_SECRET=s MASTER_PORT=", "RANK", ""},
		{"SLURM_NTASKS=3 SLURM_STEP_ID=0 SLURM_NODELIST=127.0.0.1,n[07-08] SLURM_TASKS_PER_NODE=1(x3) RINGO_COMM_SECRET=s " +
			"SLURM_JOB_ID=", "SLURM_PROCID", "host n07, "},
	} {
		t.Run(c.rank, func(t *testing.T) {
			t.Parallel()
			port := freeport.Port(t)
			spec := func(rank string) *bootstrap.Spec {
				env := map[string]string{c.rank: rank}
				for v := range strings.FieldsSeq(c.vars + port) {
					key, value, _ := strings.Cut(v, "=")
					env[key] = value
				}
				s, ok, err := bootstrap.FromEnv(func(name string) string { return env[name] })
				require.NoError(t, err)
				require.True(t, ok)
				_, err = s.ID() // takes a while, once
				require.NoError(t, err)
				return &s
			}
			_, err := join(t.Context(), joinOptions{Timeout: 300 * time.Millisecond, Host: "h2", Spec: spec("2")})
			no, ok := errors.AsType[*absentError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, component{"127.0.0.1", "rank 0"}, no.Who)
			require.Regexp(t, `^nothing answers host h2, rank 2 at 127.0.0.1:\d+, an address of this host itself, `+
				`within 300ms \(.*\), and the ranks meet there: is the host up`, no.Why)

			specs := []*bootstrap.Spec{spec("0"), spec("2")}
			jobs, patience := inTime(t, func(patience time.Duration) ([]*job, []error) {
				var wg sync.WaitGroup
				jobs, errs := make([]*job, 2), make([]error, 2)
				for i, rank := range []string{"0", "2"} {
					wg.Go(func() {
						jobs[i], errs[i] = join(t.Context(), joinOptions{Timeout: patience, Host: "h" + rank, Spec: specs[i]})
					})
				}
				wg.Wait()
				return jobs, errs
			})
			r, errs := runAll(t, jobs, config{Stages: []stage{gathers("first", fine)}})
			require.Equal(t, make([]error, 2), errs)
			require.Equal(t, []string{"absent " + c.host + "rank 1"}, codes(r))
			require.Contains(t, r.Findings[0].Text, fmt.Sprint("did not come within ", patience))
			require.Equal(t, broken, r.Verdict)
			require.Equal(t, 2.0, r.Of("first", "heard")[1].Value)
		})
	}
}

// TestReach: a rank finds the address that leads to the first rank among others that lead nowhere.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := local("a", "b")
		var far net.Conn
		answered := make(chan error, 1)
		jobs[1].dial = func(ctx context.Context, _, to string, _ int) (net.Conn, error) {
			if to != "good" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			var near net.Conn
			near, far = net.Pipe()
			go func() {
				_, err := jobs[0].answer(far, wantStar)
				answered <- err
			}()
			return near, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), connectTime)
		defer cancel()
		old := jobs[1].star
		require.NoError(t, jobs[1].reach(ctx, strings.Fields("a b c d e f g good")))
		require.NoError(t, <-answered)
		for _, s := range []interface{ close() error }{old, jobs[1].star, jobs[0].star} {
			require.NoError(t, s.close())
		}
		far.Close()
	})
}

// TestServeGoesOn: serve goes on after passing errors of Accept, such as a lack of descriptors.
func TestServeGoesOn(t *testing.T) {
	ln := &unlucky{errs: []error{errors.New("too many open files"), errors.New("too many open files"), net.ErrClosed}}
	new(job).serve(ln, "", nil)
	require.Empty(t, ln.errs)
}

// unlucky is a listener whose Accept returns a list of errors.
type unlucky struct {
	net.Listener
	errs []error
}

func (u *unlucky) Accept() (net.Conn, error) {
	err := u.errs[0]
	u.errs = u.errs[1:]
	return nil, err
}

// A small value passes as it was; what is cut off, no JSON, or longer than a value may be is an error.
func TestSmallValues(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, [2]int{7, 8}))
	require.Equal(t, "\x00\x00\x00\x05[7,8]", b.String())
	whole := b.String()
	var got [2]int
	require.NoError(t, readJSON(iotest.OneByteReader(&b), &got))
	require.Equal(t, [2]int{7, 8}, got)
	require.Equal(t, io.EOF, readJSON(strings.NewReader(""), &got))
	for n := 1; n < len(whole); n++ {
		want := io.ErrUnexpectedEOF
		if n == 4 {
			want = io.EOF
		}
		require.Equal(t, want, readJSON(strings.NewReader(whole[:n]), &got), "%d bytes", n)
	}
	syntax := new(json.SyntaxError)
	require.ErrorAs(t, readJSON(strings.NewReader("\x00\x00\x00\x01{"), &got), &syntax)
	require.ErrorAs(t, readJSON(strings.NewReader("\xff\xff\xff\xff"+strings.Repeat(" ", 1<<17)), &got), &syntax,
		"it is not read without end")
	require.Error(t, writeJSON(&b, func() {}))
	cut := errors.New("cut")
	require.Equal(t, cut, writeJSON(failing{cut}, 1))
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestAddressesOfMeetings(t *testing.T) {
	for at, want := range map[string]string{"10.0.0.1:80": "10.0.0.1", "[fd77::1]:80": "fd77::1", "x": ""} {
		require.Equal(t, want, ipOf(at))
	}
	for host, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "10.0.0.1": false,
		"fd77::1": false, "": false} {
		require.Equal(t, want, isLoopback(host), host)
	}
}

// Hosts of one name get different ones, and ranks of one host the same.
func TestUniqueNames(t *testing.T) {
	require.Equal(t, []string{"a", "a", "a#2", "b", "a#3", "a#2"},
		uniqueNames([]profile{{Host: "a", ID: "1"}, {Host: "a", ID: "1"}, {Host: "a", ID: "2"}, {Host: "b", ID: "1"},
			{Host: "a", ID: "3"}, {Host: "a", ID: "2"}}))
}
