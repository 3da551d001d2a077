package capi

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	why "github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// rasOf is what the library answers to a question of RAS.
func rasOf(t *testing.T, addr string) *why.Report {
	r, err := why.Ask(t.Context(), addr)
	require.NoError(t, err)
	return r
}

// onAllRanks has each rank do something, side by side.
func onAllRanks(t *testing.T, comms []uintptr, f func(rank int, c uintptr) error) {
	errs := make([]error, len(comms))
	var wg sync.WaitGroup
	for rank, c := range comms {
		wg.Go(func() { errs[rank] = f(rank, c) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// TestRAS: five kinds of calls are counted as NCCL counts them, those of a group when it ends. Derived communicators
// are listed, with their states. After the last communicator nothing is left open.
func TestRAS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	l.Close()
	lib := with(map[string]string{"RINGO_HOST": "1", "NCCL_RAS_ADDR": addr, "CUDA_VISIBLE_DEVICES": "3"})
	files := openFiles(t)
	comms, err := lib.InitAll(2, nil)
	require.NoError(t, err)
	halves := make([]uintptr, 2)
	onAllRanks(t, comms, func(rank int, c uintptr) (err error) {
		halves[rank], err = lib.Split(0, c, 0, 1-rank, nil)
		return err
	})
	onAllRanks(t, comms, func(rank int, c uintptr) error {
		in, out := make([]int32, 2), make([]int32, 4)
		for _, kind := range []ringo.Kind{ringo.KindBroadcast, ringo.KindReduce, ringo.KindAllReduce, ringo.KindAllReduce,
			ringo.KindAlltoAll} {
			if err := lib.Do(0, c, &Call{Kind: kind, In: address(in), Out: address(out), Count: 1, Type: int32Type,
				Op: sumOp}); err != nil {
				return err
			}
		}
		g := lib.GroupStart()
		if err := lib.Do(g, halves[rank], &Call{Kind: ringo.KindAllGather, In: address(in), Out: address(out), Count: 1,
			Type: int32Type}); err != nil {
			return err
		}
		_, err := lib.GroupEnd(g)
		return err
	})
	g := lib.GroupStart() // calls of a group that fails do not count
	require.NoError(t, lib.Do(g, comms[0], allReduce([]int32{1})))
	require.Error(t, lib.Do(g, comms[0], &Call{Kind: ringo.KindAllReduce, Type: 99}))
	_, err = lib.GroupEnd(g)
	require.Error(t, err)

	r := rasOf(t, addr)
	require.Equal(t, "2.28.9", r.Version)
	require.Len(t, r.Comms, 2)
	counts := map[string]int{}
	for _, c := range r.Comms {
		require.Equal(t, 2, c.Size)
		require.Empty(t, c.Missing)
		require.Len(t, c.Ranks, 2)
		for i, m := range c.Ranks {
			require.Equal(t, i, m.GPU, "ranks of a process are told apart")
			require.Zero(t, m.Status)
			for kind, n := range m.Counts {
				counts[kind] += int(n)
			}
		}
	}
	require.Equal(t, map[string]int{"Broadcast": 2, "Reduce": 2, "AllGather": 2, "ReduceScatter": 0, "AllReduce": 4},
		counts)

	require.NoError(t, lib.Finalize(0, halves[0]))
	r = rasOf(t, addr)
	finalized := 0
	for _, c := range r.Comms {
		for _, m := range c.Ranks {
			if m.Status.Final {
				finalized++
			}
		}
	}
	require.Equal(t, 1, finalized)
	onAllRanks(t, halves, func(_ int, c uintptr) error { return lib.Destroy(c) })
	onAllRanks(t, comms, func(_ int, c uintptr) error { return lib.Destroy(c) })
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	require.Eventually(t, func() bool { return openFiles(t) <= files }, tier.Patience, time.Millisecond)
}

// Switched off, nothing listens; a call counts nothing. The numbers are read as NCCL reads them.
func TestRASOff(t *testing.T) {
	for value, on := range map[string]bool{"": true, "1": true, "0x1": true, "0": false, "2": false, "no": false} {
		require.Equal(t, on, env{func(string) string { return value }}.ras(), value)
	}
	lib := with(map[string]string{"RINGO_HOST": "1", "NCCL_RAS_ENABLE": "0"})
	comms, err := lib.InitAll(1, nil)
	require.NoError(t, err)
	require.NoError(t, lib.Do(0, comms[0], allReduce([]int32{1})))
	c, _, err := lib.known(comms[0])
	require.NoError(t, err)
	require.Nil(t, c.lease)
	require.Nil(t, lib.agent)
	require.Zero(t, c.counts[4].Load())
	require.NoError(t, lib.Destroy(comms[0]))
}

// TestNVML: a GPU's number in the driver's tools comes from CUDA_VISIBLE_DEVICES.
func TestNVML(t *testing.T) {
	for visible, want := range map[string]int{"": 1, "4,6": 6, "4": 1, "GPU-1,GPU-2": 1, "0,-1": 1} {
		require.Equal(t, want, env{func(string) string { return visible }}.nvml(1), visible)
	}
}

// TestRASOnGPUs: ranks have their GPU's number in the program and in the driver's tools.
func TestRASOnGPUs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	l.Close()
	lib := with(map[string]string{"NCCL_RAS_ADDR": addr, "CUDA_VISIBLE_DEVICES": "4,6"})
	lib.machine, err = gpu.Open(gpu.Options{Emulate: 2})
	require.NoError(t, err)
	comms, err := lib.InitAll(2, nil)
	require.NoError(t, err)
	r := rasOf(t, addr)
	require.Len(t, r.Comms, 1)
	require.Equal(t, 4, r.Comms[0].Ranks[0].GPU)
	require.Equal(t, 6, r.Comms[0].Ranks[1].GPU)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprint(c, "STATUS\n")
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(text), "compiled with CUDA 13.0\nCUDA runtime version 13000, driver version 13000\n")
	require.Contains(t, string(text), "\n      1          1            2          1        2\n")
	onAllRanks(t, comms, func(_ int, c uintptr) error { return lib.Destroy(c) })
	require.NoError(t, lib.machine.Close())
}
