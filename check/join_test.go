package check

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
)

// joined are the jobs of ranks that join over TCP, of a job that may have more.
func joined(t *testing.T, size int, timeout time.Duration, ranks ...int) ([]*Job, []error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	ln.Close()
	jobs, errs := make([]*Job, len(ranks)), make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() {
			host := []string{"a", "b", "c", "d"}[r]
			jobs[i], errs[i] = Join(t.Context(), JoinOptions{Timeout: timeout, Host: host, Spec: &bootstrap.Spec{Rank: r, Size: size, Addr: addr, Secret: "a test's"}})
		})
	}
	wg.Wait()
	return jobs, errs
}

// Ranks meet over TCP and carry out a check.
func TestJoin(t *testing.T) {
	jobs, errs := joined(t, 3, 30*time.Second, 0, 1, 2)
	require.Equal(t, []error{nil, nil, nil}, errs)
	r, errs := runAll(t, jobs, Config{Stages: []Stage{gathers("first", fine)}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Empty(t, r.Findings)
	require.Len(t, r.Of("first", "heard"), 3)
}

// A rank that does not come is named, and the others go on without it.
func TestJoinWithoutOne(t *testing.T) {
	t.Parallel() // it waits
	jobs, errs := joined(t, 4, 5*time.Second, 0, 1, 3)
	require.Equal(t, []error{nil, nil, nil}, errs)
	r, errs := runAll(t, jobs, Config{Stages: []Stage{gathers("first", fine)}})
	require.Equal(t, []error{nil, nil, nil}, errs)
	require.Equal(t, []string{"absent rank 2"}, codes(r))
	require.Contains(t, r.Findings[0].Text, "it did not come within")
	require.Equal(t, Broken, r.Verdict)
	require.Len(t, r.Of("first", "heard"), 3)
	require.Equal(t, 3.0, r.Of("first", "heard")[2].Value)
}

// Without rank 0 there is nobody to meet, and the others say so.
func TestJoinWithoutTheFirst(t *testing.T) {
	t.Parallel() // it waits
	_, errs := joined(t, 2, time.Second, 1)
	no, ok := errors.AsType[*bootstrap.JoinError](errs[0])
	require.True(t, ok, "%v", errs[0])
	require.Contains(t, no.Reason, "is rank 0 running")
}
