package capi

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/mem"
)

// TestNoDriver: the error of a missing driver or device tells how to go on.
func TestNoDriver(t *testing.T) {
	l := with(map[string]string{"RINGO_CUDA_LIBRARY": filepath.Join(t.TempDir(), "none", "libcuda.so.1")})
	id, err := onHost().UniqueID()
	require.NoError(t, err)
	for _, err := range []error{second(l.InitAll(1, nil)), second(l.InitRank(0, 1, 0, []bootstrap.ID{id}, nil)),
		second(l.MemAlloc(1)), second(l.MemAlloc(0))} {
		refused(t, err, UnhandledCudaError, "; for collectives on host memory set RINGO_HOST=1")
	}
	l = onGPUs(t, 1)
	defer l.machine.Close()
	for _, devices := range [][]int{nil, {0, 1}, {-1, 0}} {
		_, err = l.InitAll(2, devices)
		require.Equal(t, InvalidArgument, ResultOf(err), "%v", err)
	}
}

// TestWrongSettings: whenever a communicator is made, the error names wrong settings.
func TestWrongSettings(t *testing.T) {
	l := with(map[string]string{"RINGO_HOST": "1", "RINGO_TIMEOUT": "never"})
	for range 2 {
		for _, err := range []error{second(l.InitAll(1, nil)), second(l.UniqueID())} {
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, "never")
		}
	}
	addr, secret := env{func(name string) string { return map[string]string{"NCCL_COMM_ID": "h:1"}[name] }}.meeting()
	require.Equal(t, []string{"h:1", "NCCL_COMM_ID h:1"}, []string{addr, secret})
}

// TestAsyncError: the state of a communicator under way in a group, well, failed, and revoked.
func TestAsyncError(t *testing.T) {
	l := onHost()
	id, err := l.UniqueID()
	require.NoError(t, err)
	g := l.GroupStart()
	c, err := l.InitRank(g, 1, 0, []bootstrap.ID{id}, nil)
	require.NoError(t, err)
	is := func(want Result) {
		t.Helper()
		r, why, err := l.AsyncError(c)
		require.NoError(t, err)
		require.Equal(t, want, r)
		require.Equal(t, want == Success || want == InProgress, why == nil)
	}
	is(InProgress)
	require.ErrorIs(t, l.Do(0, c, allReduce([]int32{1})), errNotReady)
	_, err = l.GroupEnd(g)
	require.NoError(t, err)
	is(Success)
	n, err := l.Count(c)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, l.Revoke(c, 0))
	require.ErrorIs(t, l.Do(0, c, allReduce([]int32{1})), errRevoked)
	is(Success)
	require.NoError(t, l.Destroy(c))
}

// all has ranks do something in one group.
func all(t *testing.T, l *Library, comms []uintptr, f func(g, c uintptr, rank int) error) error {
	t.Helper()
	g := l.GroupStart()
	for rank, c := range comms {
		require.NoError(t, f(g, c, rank))
	}
	_, err := l.GroupEnd(g)
	return err
}

// TestDerived: communicators made by Shrink and Split, and a rank in no part.
func TestDerived(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 4)
	works := func(comms ...uintptr) {
		t.Helper()
		data := make([][]int32, len(comms))
		require.NoError(t, all(t, l, comms, func(g, c uintptr, rank int) error {
			n, err := l.Count(c)
			require.NoError(t, err)
			got, err := l.UserRank(c)
			require.NoError(t, err)
			require.Equal(t, []int{len(comms), rank}, []int{n, got})
			data[rank] = []int32{1 << rank}
			return l.Do(g, c, allReduce(data[rank]))
		}))
		for _, d := range data {
			require.Equal(t, []int32{1<<len(comms) - 1}, d)
		}
		destroy(t, l, comms...)
	}
	for _, exclude := range [][]int{{1}, {0, 2}, {3, 3}, {0, 1, 2}} {
		out := map[int]bool{}
		for _, r := range exclude {
			out[r] = true
		}
		var stay, shrunk []uintptr
		for r, c := range comms {
			if !out[r] {
				stay = append(stay, c)
			}
		}
		shrunk = make([]uintptr, len(stay))
		require.NoError(t, all(t, l, stay, func(g, c uintptr, i int) (err error) {
			shrunk[i], err = l.Shrink(g, c, exclude, nil, 0)
			return err
		}))
		works(shrunk...)
	}

	parts := make([]uintptr, 4)
	require.NoError(t, all(t, l, comms, func(g, c uintptr, rank int) (err error) {
		color := rank % 2
		if rank == 3 {
			color = ringo.NoColor
		}
		parts[rank], err = l.Split(g, c, color, -rank, nil)
		return err
	}))
	require.Zero(t, parts[3])
	works(parts[2], parts[0])
	works(parts[1])

	require.ErrorContains(t, all(t, l, comms, func(g, c uintptr, _ int) error {
		return second(l.Grow(g, c, 5, nil, -1, nil))
	}), "no rank gave the unique ID of ncclCommGetUniqueId")
	require.NoError(t, l.Finalize(0, comms[3]))
	_, err := l.Shrink(0, comms[3], []int{0}, nil, 0)
	require.ErrorIs(t, err, errFinalized)
	refused(t, l.Finalize(0, comms[3]), InvalidArgument, errFinalized.Error())
	refused(t, l.Suspend(0, comms[3], suspendMemory), InvalidArgument, errFinalized.Error())

	// After a failure the ranks of InitAll meet in their process.
	require.NoError(t, l.Revoke(comms[2], 0))
	require.Error(t, l.Do(0, comms[0], allReduce([]int32{1})))
	var shrunk [2]uintptr
	require.NoError(t, all(t, l, comms[:2], func(g, c uintptr, i int) (err error) {
		shrunk[i], err = l.Shrink(g, c, []int{2, 3}, nil, shrinkAbort)
		return err
	}))
	works(shrunk[:]...)
	for _, c := range comms {
		require.NoError(t, l.Abort(c))
	}
	l.closing.Wait()
}

// TestRevoked: a communicator that was revoked takes no calls, and others are made from it, of all ranks or of some.
func TestRevoked(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 3)
	for _, c := range comms {
		require.NoError(t, l.Revoke(c, 0))
	}
	for _, c := range comms {
		refused(t, l.Revoke(c, 0), InvalidArgument, "the communicator was revoked before")
		refused(t, l.Finalize(0, c), InvalidArgument, "the communicator was revoked: ncclCommDestroy ends it")
		err := l.Do(0, c, allReduce([]int32{1}))
		require.Equal(t, InvalidUsage, ResultOf(err), "%v", err)
		require.ErrorIs(t, err, errRevoked)
		require.ErrorIs(t, l.Do(0, c, &Call{Kind: ringo.KindAllReduce, Type: int32Type, Op: sumOp}), errRevoked)
		r, why, err := l.AsyncError(c)
		require.NoError(t, err)
		require.NoError(t, why)
		require.Equal(t, Success, r)
	}
	made := func(comms []uintptr, f func(g, c uintptr, i int) (uintptr, error)) {
		t.Helper()
		parts := make([]uintptr, len(comms))
		require.NoError(t, all(t, l, comms, func(g, c uintptr, i int) (err error) {
			parts[i], err = f(g, c, i)
			return err
		}))
		parts = slices.DeleteFunc(parts, func(c uintptr) bool { return c == 0 })
		data := make([][]int32, len(parts))
		require.NoError(t, all(t, l, parts, func(g, c uintptr, i int) error {
			data[i] = []int32{1 << i}
			return l.Do(g, c, allReduce(data[i]))
		}))
		for i, c := range parts {
			require.Equal(t, []int32{1<<len(parts) - 1}, data[i])
			require.NoError(t, l.Destroy(c))
		}
	}
	for range 2 {
		made(comms, func(g, c uintptr, i int) (uintptr, error) { return l.Split(g, c, 0, -i, nil) })
		made(comms, func(g, c uintptr, i int) (uintptr, error) { return l.Split(g, c, -i%2, 0, nil) })
		made(comms[:2], func(g, c uintptr, _ int) (uintptr, error) { return l.Shrink(g, c, []int{2}, nil, 0) })
	}
	destroy(t, l, comms...)
	comms, err := l.InitAll(2, nil) // of which one rank alone revokes
	require.NoError(t, err)
	require.NoError(t, l.Revoke(comms[0], 0))
	made(comms, func(g, c uintptr, i int) (uintptr, error) { return l.Split(g, c, 0, -i, nil) })
	for _, c := range comms {
		require.NoError(t, l.Abort(c))
	}
	comms, err = l.InitAll(1, nil)
	require.NoError(t, err)
	require.NoError(t, l.Finalize(0, comms[0]))
	refused(t, l.Revoke(comms[0], 0), InvalidArgument, "the communicator was finalized or is being destroyed")
	require.NoError(t, l.Destroy(comms[0]))
	l.closing.Wait()
}

// TestEmptyCollectives: a collective of no elements is checked and thrown away, so that a rank may leave it out.
func TestEmptyCollectives(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	for _, kind := range []ringo.Kind{ringo.KindAllReduce, ringo.KindReduce, ringo.KindBroadcast, ringo.KindAllGather,
		ringo.KindReduceScatter, ringo.KindAlltoAll, ringo.KindGather, ringo.KindScatter} {
		empty := &Call{Kind: kind, Type: int32Type, Op: sumOp}
		require.NoError(t, l.Do(0, comms[0], empty), kind)
		g := l.GroupStart()
		require.NoError(t, l.Do(g, comms[1], empty), kind)
		require.NoError(t, l.Do(g, comms[1], empty), kind)
		_, err := l.GroupEnd(g)
		require.NoError(t, err, kind)
		if kind.Rooted() {
			refused(t, l.Do(0, comms[0], &Call{Kind: kind, Type: int32Type, Peer: 2}), InvalidArgument, "root 2 is not in 0…1")
		}
		refused(t, l.Do(0, comms[0], &Call{Kind: kind, Type: 12}), InvalidArgument, "data type 12 is not in 0…11")
		data := [][]int32{{1}, {2}}
		require.NoError(t, all(t, l, comms, func(g, c uintptr, i int) error { return l.Do(g, c, allReduce(data[i])) }), kind)
		require.Equal(t, [][]int32{{3}, {3}}, data, kind)
	}
	destroy(t, l, comms...)
}

// TestSidedGroups: a group sends its one-sided messages before it waits, whatever the order of the calls.
func TestSidedGroups(t *testing.T) {
	t.Parallel()
	l := onHost()
	comms, memory, wins := pairWithWindows(t, l)
	g := l.GroupStart()
	require.NoError(t, l.WaitSignal(g, comms[1], []Arrival{{Peer: 0, Count: 2}}, 0))
	require.NoError(t, l.PutSignal(g, comms[0], put([]int32{5}, 1, wins[0], 8)))
	require.NoError(t, l.PutSignal(g, comms[0], &Put{Peer: 1}))
	require.Zero(t, memory[1][2], "not before the group ends")
	_, err := l.GroupEnd(g)
	require.NoError(t, err)
	require.EqualValues(t, 5, memory[1][2])
	destroy(t, l, comms...)
}

// One-sided messages between GPUs, by windows of their memory.
func TestSignalsOnGPUs(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2)
	require.ErrorIs(t, l.PutSignal(0, comms[0], &Put{Peer: 1}), errNoWindow)
	require.ErrorIs(t, l.WaitSignal(0, comms[0], []Arrival{{Peer: 1, Count: 1}}, 0), errNoWindow)
	var at, windows [2]uintptr
	require.NoError(t, all(t, l, comms, func(g, c uintptr, i int) error {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.With(func() (err error) { at[i], err = l.MemAlloc(4096); return err }))
		require.NoError(t, d.Write(mem.Device(i, at[i], 8), []byte{byte(i + 1), 0, 0, 0, 9, 9, 9, 9}))
		windows[i], err = l.WindowRegister(g, c, at[i], 4096)
		return err
	}))
	require.NoError(t, l.PutSignal(0, comms[0],
		&Put{Puts: true, Local: at[0], Count: 1, Type: int32Type, Peer: 1, Window: windows[0], Offset: 4}))
	require.NoError(t, l.PutSignal(0, comms[0], &Put{Peer: 1}))
	require.NoError(t, l.WaitSignal(0, comms[1], []Arrival{{Peer: 0, Count: 2}}, 0))
	for i := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.Synchronize(0))
		got := make([]byte, 8)
		require.NoError(t, d.Read(got, mem.Device(i, at[i], 8)))
		require.Equal(t, []uint32{2, 1}[1-i], binary.LittleEndian.Uint32(got))
		require.Equal(t, []uint32{0x09090909, 1}[i], binary.LittleEndian.Uint32(got[4:]))
	}
	for i, c := range comms {
		require.NoError(t, l.MemFree(at[i]))
		require.NoError(t, l.Destroy(c))
	}
	require.NoError(t, l.machine.Close(), "no race, no leak")
}
