package capi

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched/sim"
)

// refused wants an error with a result, whose text ends in says.
func refused(t *testing.T, err error, r Result, says string) {
	t.Helper()
	require.Error(t, err, says)
	require.Equal(t, r, ResultOf(err), "%v", err)
	require.True(t, strings.HasSuffix(err.Error(), says), "%q does not end in %q", err.Error(), says)
}

// The version is one of NCCL's, with points or without.
func TestVersions(t *testing.T) {
	for text, want := range map[string]int{"": 22809, "2.30.7": 23007, "23007": 23007, "20000": 20000, "99999": 99999,
		"2.0.99": 20099, "3.1.2": 30102} {
		v, err := with(map[string]string{"RINGO_NCCL_VERSION": text}).Version()
		require.NoError(t, err)
		require.Equal(t, want, v, text)
	}
	for _, text := range []string{"2.30", "2.30.7.1", "19999", "100000", "new", "2.x.1", "2.100.0", "2.-1.0", " 23007"} {
		v, err := with(map[string]string{"RINGO_NCCL_VERSION": text}).Version()
		refused(t, err, InvalidArgument, fmt.Sprintf("RINGO_NCCL_VERSION=%q: want a version such as 2.30.7 or 23007", text))
		require.Zero(t, v)
	}
}

// TestNone: calls with handles that no communicator, window or group has are refused.
func TestNone(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	at, err := l.MemAlloc(4096)
	require.NoError(t, err)
	for _, none := range []uintptr{0, 99} {
		for name, err := range map[string]error{
			"Do":             l.Do(0, none, allReduce([]int32{1})),
			"Count":          second(l.Count(none)),
			"UserRank":       second(l.UserRank(none)),
			"Device":         second(l.Device(none)),
			"Split":          second(l.Split(0, none, 0, 0, nil)),
			"Shrink":         second(l.Shrink(0, none, []int{0}, nil, 0)),
			"GrowID":         second(l.GrowID(none)),
			"Grow":           second(l.Grow(0, 99, 3, nil, -1, nil)),
			"Revoke":         l.Revoke(99, 0),
			"Register":       second(l.Register(none, at)),
			"WindowRegister": second(l.WindowRegister(0, none, at, 1)),
			"Deregister":     l.Deregister(none, 1),
			"PutSignal":      l.PutSignal(0, none, &Put{}),
			"WaitSignal":     l.WaitSignal(0, none, nil, 0),
			"PreMulSum":      second(l.PreMulSum(none, at, 0, ScalarHost)),
			"RedOpDestroy":   l.RedOpDestroy(none, 5),
			"Suspend":        l.Suspend(0, none, suspendMemory),
			"Resume":         l.Resume(0, none),
			"MemStats":       second(l.MemStats(none, 0)),
			"Resource":       l.Resource(0, none, 1, nil),
			"Finalize":       l.Finalize(0, 99),
		} {
			require.Equal(t, InvalidArgument, ResultOf(err), "%s: %v", name, err)
			require.Regexp(t, "is no communicator|the communicator is null", err.Error(), name)
		}
		for name, err := range map[string]error{
			"Deregister":  l.Deregister(comms[0], 99),
			"WindowAt":    second(l.WindowAt(comms[0], none)),
			"EndResource": l.EndResource(comms[0], none),
			"PeerAddress": second(l.PeerAddress(none, 0, 0)),
			"TeamAddress": second(l.TeamAddress(none, 0, 0)),
			"Multimem":    second(l.Multimem(none, 0)),
			"PutSignal":   l.PutSignal(0, comms[0], put([]int32{1}, 1, none, 0)),
		} {
			require.Equal(t, InvalidArgument, ResultOf(err), "%s: %v", name, err)
			require.Regexp(t, "is no window|the window is null", err.Error(), name)
		}
		_, _, _, err = l.Reach(none)
		require.Equal(t, InvalidArgument, ResultOf(err))
		r, why, err := l.AsyncError(none)
		require.Equal(t, InvalidArgument, ResultOf(err))
		require.NoError(t, why)
		require.Equal(t, InvalidArgument, r)
	}
	for name, err := range map[string]error{
		"GroupEnd":         second(l.GroupEnd(99)),
		"GroupSimulateEnd": second(l.GroupSimulateEnd(99, 0)),
		"Do":               l.Do(99, comms[0], allReduce([]int32{1})),
		"Split":            second(l.Split(99, comms[0], 0, 0, nil)),
		"PutSignal":        l.PutSignal(99, comms[0], &Put{}),
	} {
		require.Equal(t, InvalidArgument, ResultOf(err), "%s: %v", name, err)
		require.Contains(t, err.Error(), "is no group", name)
	}
	_, err = l.GroupEnd(0)
	refused(t, err, InvalidUsage, "ncclGroupEnd without ncclGroupStart")
	require.NoError(t, l.Finalize(0, 0), "as NCCL has it")
	require.NoError(t, l.Revoke(0, 9), "as NCCL has it")
	require.NoError(t, l.Deregister(comms[0], 0), "of a registration without effect")
	destroy(t, l, comms...)
}

func second[T any](_ T, err error) error { return err }

// Arguments that are out of their range.
func TestArguments(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	pair, err := l.InitAll(2, nil)
	require.NoError(t, err)
	id, err := l.UniqueID()
	require.NoError(t, err)
	defer bootstrap.Stop(id)
	c := comms[0]
	at, err := l.MemAlloc(8192)
	require.NoError(t, err)
	registered, err := l.Register(c, at)
	require.NoError(t, err)
	foreign, err := l.Register(pair[0], at)
	require.NoError(t, err)
	grow := func(rank int) error { return second(l.Grow(0, c, 3, nil, rank, nil)) }
	call := func(change func(*Call)) error {
		x := allReduce([]int32{1})
		change(x)
		return l.Do(0, c, x)
	}
	none := bootstrap.ID{}
	for _, x := range []struct {
		says string
		err  error
	}{
		{"data type -1 is not in 0…11", call(func(x *Call) { x.Type = -1 })},
		{"data type 12 is not in 0…11", call(func(x *Call) { x.Type = 12 })},
		{"count 70368744177665: there is no memory for it", call(func(x *Call) { x.Count = 1<<46 + 1 })},
		{"the send buffer is at 0xfff", call(func(x *Call) { x.In = 0xfff })},
		{"the receive buffer is at 0x0", call(func(x *Call) { x.Out = 0 })},
		{"operator 5 was not made by this communicator, or was destroyed", call(func(x *Call) { x.Op = 5 })},
		{"operator -1 was not made by this communicator, or was destroyed", call(func(x *Call) { x.Op = -1 })},
		{"operator 4 is built in", l.RedOpDestroy(c, 4)},
		{"operator 0 is built in", l.RedOpDestroy(c, 0)},
		{"operator 5 was not made by this communicator, or was destroyed", l.RedOpDestroy(c, 5)},
		{"the scalar is at 0xfff", second(l.PreMulSum(c, 0xfff, 7, ScalarHost))},
		{"residence 2 of a scalar is neither 0 nor 1", second(l.PreMulSum(c, at, 7, 2))},
		{"data type 99 is not in 0…11", second(l.PreMulSum(c, at, 99, ScalarHost))},
		{"the scalar buffer is at 0x0", second((&comm{}).memory("scalar", 0, 1))},
		{"0 devices", second(l.InitAll(0, nil))},
		{"rank 2 of 2", second(l.InitRank(0, 2, 2, []bootstrap.ID{id}, nil))},
		{"rank -1 of 2", second(l.InitRank(0, 2, -1, []bootstrap.ID{id}, nil))},
		{"rank 0 of 0", second(l.InitRank(0, 0, 0, []bootstrap.ID{id}, nil))},
		{"0 unique IDs for 2 ranks: want one, and one a rank at most", second(l.InitRank(0, 2, 0, nil, nil))},
		{"2 unique IDs for 1 ranks: want one, and one a rank at most",
			second(l.InitRank(0, 1, 0, []bootstrap.ID{id, id}, nil))},
		{none.Check().Error(), second(l.InitRank(0, 2, 0, []bootstrap.ID{none}, nil))},
		{"a new rank needs the unique ID of ncclCommGetUniqueId", second(l.Grow(0, 0, 3, nil, 2, nil))},
		{"rank 0 of a communicator that grows keeps its number: give -1, not 0", grow(0)},
		{"rank 0 of a communicator that grows keeps its number: give -1, not 2", grow(2)},
		{"2 ranks cannot become 1", second(l.Grow(0, c, 1, nil, -1, nil))},
		{"ncclCommShrink that excludes nobody", second(l.Shrink(0, c, nil, nil, 0))},
		{"rank 2 is to be excluded from 2", second(l.Shrink(0, c, []int{2}, nil, 0))},
		{"rank -1 is to be excluded from 2", second(l.Shrink(0, c, []int{-1}, nil, 0))},
		{"ncclMemAlloc of 70368744177665 bytes", second(l.MemAlloc(1<<46 + 1))},
		{fmt.Sprintf("ncclCommWindowRegister of 9 bytes at %#x: a window begins at a multiple of 4096", at+8),
			second(l.WindowRegister(0, c, at+8, 9))},
		{"the window is another communicator's", l.Deregister(c, foreign)},
		{"the window is another communicator's", second(l.WindowAt(c, foreign))},
		{"the window is another communicator's", l.PutSignal(0, c, put([]int32{1}, 1, foreign, 0))},
		{"what ncclCommRegister gave is no window: use ncclCommWindowRegister",
			l.PutSignal(0, c, put([]int32{1}, 1, registered, 0))},
		{"signal 1, context 0, flags 0x0: all have to be 0", l.PutSignal(0, c, &Put{Index: 1})},
		{"signal 0, context 2, flags 0x0: all have to be 0", l.PutSignal(0, c, &Put{Context: 2})},
		{"signal 0, context 0, flags 0x3: all have to be 0", l.PutSignal(0, c, &Put{Flags: 3})},
		{"peer -1 of 2 ranks", l.PutSignal(0, c, &Put{Peer: -1})},
		{"signal 1, context 0: both have to be 0", l.WaitSignal(0, c, []Arrival{{Index: 1}}, 0)},
		{"-1 signals of peer 1 of 2 ranks", l.WaitSignal(0, c, []Arrival{{Peer: 1, Count: -1}}, 0)},
		{"1 signals of peer 2 of 2 ranks", l.WaitSignal(0, c, []Arrival{{Peer: 2, Count: 1}}, 0)},
		{"1 signals of peer -1 of 2 ranks", l.WaitSignal(0, c, []Arrival{{Peer: -1, Count: 1}}, 0)},
		{"ncclCommSuspend has no flags but NCCL_SUSPEND_MEM, not 0", l.Suspend(0, c, 0)},
		{"ncclCommMemStats has no figure 4", second(l.MemStats(c, 4))},
		{"ncclCommRevoke has no flags but NCCL_REVOKE_DEFAULT, not 1", l.Revoke(c, 1)},
		{"out is null", l.PutParameter(0, 32, true, 0)},
		{"no parameter has this handle", l.PutParameter(-1, 32, true, at)},
	} {
		refused(t, x.err, InvalidArgument, x.says)
	}
	refused(t, l.MemFree(99), UnhandledCudaError,
		"0x63 is no memory of ncclMemAlloc, or was freed: cudaFree frees other memory")
	_, err = l.Shrink(0, c, []int{0}, nil, 0)
	refused(t, err, InvalidArgument, "rank 0 is excluded: only ranks that stay call ncclCommShrink")
	refused(t, l.Resume(0, c), InvalidUsage, "ncclCommResume of a communicator that is not suspended")
	err = l.Resource(0, c, 1, nil)
	require.ErrorContains(t, err, "ncclDevCommCreate: ")
	refused(t, err, InvalidUsage, "the communicator is on host memory")
	refused(t, Unsupported("ncclX"), InvalidUsage,
		"by libnccl of Ringo "+ringo.Version+", which has nothing for kernels that use networks: call collectives from the "+
			"host, or ask for LSA barriers")

	window, err := l.WindowRegister(0, c, 0, 1)
	require.NoError(t, err)
	require.Zero(t, window, "no window, on no rank")
	where, err := l.WindowAt(c, registered)
	require.NoError(t, err)
	require.Equal(t, at, where)
	destroy(t, l, append(comms, pair...)...)
	require.NoError(t, l.MemFree(at))
	require.Error(t, l.MemFree(at))
}

// TestPutParameter: a parameter's value is stored in exactly the bytes of the integer type asked for.
func TestPutParameter(t *testing.T) {
	l := with(map[string]string{"NCCL_MAX_CTAS": "-2"})
	n, err := l.Parameter("MAX_CTAS")
	require.NoError(t, err)
	at, err := onHost().MemAlloc(16)
	require.NoError(t, err)
	words := int32s(at, 4)
	for bits, want := range map[int][3]int32{8: {0x010101fe, 0x01010101, 0x01010101},
		16: {0x0101fffe, 0x01010101, 0x01010101}, 32: {-2, 0x01010101, 0x01010101}, 64: {-2, -1, 0x01010101}} {
		for i := range words {
			words[i] = 0x01010101
		}
		require.NoError(t, l.PutParameter(n, bits, true, at))
		require.Equal(t, want, [3]int32(words), "%d bits", bits)
	}
}

// TestOperators: a communicator's own operators are numbered after those built in; a new operator gets the number of a
// destroyed one.
func TestOperators(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 1)
	c := comms[0]
	scalar, err := l.MemAlloc(8)
	require.NoError(t, err)
	numbers := func(values ...int32) (list []int) {
		for _, v := range values {
			int32s(scalar, 1)[0] = v
			n, err := l.PreMulSum(c, scalar, int32Type, ScalarHost)
			require.NoError(t, err)
			list = append(list, n)
		}
		return list
	}
	require.Equal(t, []int{5, 6, 7}, numbers(2, 3, 4))
	reduced := func(op int) []int32 {
		data := []int32{10, 20}
		call := allReduce(data)
		call.Op = op
		require.NoError(t, l.Do(0, c, call))
		return data
	}
	require.Equal(t, []int32{30, 60}, reduced(6), "the scalar was read when the operator was made")
	require.NoError(t, l.RedOpDestroy(c, 6))
	refused(t, l.RedOpDestroy(c, 6), InvalidArgument, "operator 6 was not made by this communicator, or was destroyed")
	require.Equal(t, []int{6, 8}, numbers(5, 6))
	require.Equal(t, []int32{50, 100}, reduced(6))
	require.Equal(t, []int32{20, 40}, reduced(5))
	wrong := allReduce([]int32{1})
	wrong.Op, wrong.Type = 5, 3
	refused(t, l.Do(0, c, wrong), InvalidArgument, "operator 5 was made for int32, and the call has uint32")
	int32s(scalar, 1)[0] = 7
	n, err := l.PreMulSum(c, scalar, int32Type, ScalarDevice)
	require.NoError(t, err)
	require.Equal(t, []int32{70, 140}, reduced(n))
	require.NoError(t, l.Destroy(c))
}

// A group that is simulated is not carried out; the longest of its communicators counts.
func TestSimulate(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	lone, err := l.InitAll(1, nil)
	require.NoError(t, err)
	at, err := l.MemAlloc(64)
	require.NoError(t, err)
	info := simInfo(at)
	*info = simFields{size: unsafe.Sizeof(simFields{}), magic: simMagic}
	data := []int32{1, 2, 3, 4}
	estimate := func(add func(g uintptr)) float32 {
		info.estimatedTime = -1
		g := l.GroupStart()
		add(g)
		left, err := l.GroupSimulateEnd(g, at)
		require.NoError(t, err)
		require.Zero(t, left)
		require.Equal(t, []int32{1, 2, 3, 4}, data)
		return info.estimatedTime
	}
	do := func(g, c uintptr, call *Call) { require.NoError(t, l.Do(g, c, call)) }
	require.Zero(t, estimate(func(uintptr) {}))
	require.Zero(t, estimate(func(g uintptr) { do(g, lone[0], allReduce(data)) }), "one rank has it already")
	one := estimate(func(g uintptr) { do(g, comms[0], allReduce(data)) })
	require.Greater(t, one, float32(0))
	require.Less(t, one, float32(1000), "microseconds")
	require.InDelta(t, 2*one,
		estimate(func(g uintptr) { do(g, comms[0], allReduce(data)); do(g, comms[0], allReduce(data)) }), 1e-3,
		"one after the other")
	require.Equal(t, one, estimate(func(g uintptr) { do(g, comms[0], allReduce(data)); do(g, comms[1], allReduce(data)) }),
		"side by side")
	send := func(n int) float32 {
		return estimate(func(g uintptr) {
			do(g, comms[0], &Call{Kind: ringo.KindSend, In: address(make([]int32, n)), Count: uint64(n), Type: int32Type,
				Peer: 1})
		})
	}
	near, far := send(1), send(1_000_001)
	link := sim.SharedMemory.Intra
	require.InDelta(t, 1e6*(link.Latency+link.Overhead+4/link.Bandwidth), near, 1e-4)
	require.InDelta(t, 1e6*4e6/sim.SharedMemory.Intra.Bandwidth, far-near, 0.1)

	info.magic++
	g := l.GroupStart()
	left, err := l.GroupSimulateEnd(g, at)
	refused(t, err, InvalidArgument, "ncclSimInfo_t: begin with NCCL_SIM_INFO_INITIALIZER")
	require.Zero(t, left)
	refused(t, second(l.GroupEnd(left)), InvalidUsage, "ncclGroupEnd without ncclGroupStart")
	info.magic, info.size = simMagic, simBytes-1
	_, err = l.GroupSimulateEnd(l.GroupStart(), at)
	require.Error(t, err)
	_, err = l.GroupSimulateEnd(l.GroupStart(), 0)
	require.NoError(t, err)

	g = l.GroupStart()
	wrong := allReduce(data)
	wrong.Type = 99
	require.Error(t, l.Do(g, comms[0], wrong))
	info.size, info.estimatedTime = simBytes, -1
	_, err = l.GroupSimulateEnd(g, at)
	require.ErrorContains(t, err, "data type 99")
	require.EqualValues(t, -1, info.estimatedTime)
	destroy(t, l, append(comms, lone...)...)
}

// TestReachAndMemory: ranks reach each other's windows, and Suspend gives back memory until Resume.
func TestReachAndMemory(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2)
	var at, windows [2]uintptr
	g := l.GroupStart()
	for i, c := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.With(func() (err error) { at[i], err = l.MemAlloc(4096); return err }))
		windows[i], err = l.WindowRegister(g, c, at[i], 4096)
		require.NoError(t, err)
	}
	_, err := l.GroupEnd(g)
	require.NoError(t, err)
	reachable := func(p uintptr, err error) uint64 {
		require.NoError(t, err)
		d, err := l.device(0)
		require.NoError(t, err)
		b := make([]byte, 1)
		require.NoError(t, d.Read(b, mem.Device(0, p, 1)))
		return uint64(b[0])
	}
	for i := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.Write(mem.Device(i, at[i], 4096), append(make([]byte, 16, 4096), byte(10+i))[:4096]))
		size, rank, _, err := l.Reach(comms[i])
		require.NoError(t, err)
		require.Equal(t, []int{2, i}, []int{size, rank})
		own, err := l.PeerAddress(windows[i], 16, i)
		require.NoError(t, err)
		require.Equal(t, at[i]+16, own)
		other, err := l.PeerAddress(windows[i], 16, 1-i)
		require.NoError(t, err)
		team, err := l.TeamAddress(windows[i], 16, 1-i)
		require.NoError(t, err)
		require.Equal(t, other, team)
		all, err := l.Multimem(windows[i], 4095)
		require.NoError(t, err)
		require.Zero(t, all)
		for says, err := range map[string]error{
			"peer 2 of 2 ranks":                               second(l.PeerAddress(windows[i], 0, 2)),
			"peer -1 of 2 ranks":                              second(l.PeerAddress(windows[i], 0, -1)),
			"rank 2 of the 2 that have access to each other":  second(l.TeamAddress(windows[i], 0, 2)),
			"rank -1 of the 2 that have access to each other": second(l.TeamAddress(windows[i], 0, -1)),
			"offset 4096 of a window of 4096 bytes":           second(l.Multimem(windows[i], 4096)),
		} {
			refused(t, err, InvalidArgument, says)
		}
	}
	require.EqualValues(t, 11, reachable(l.PeerAddress(windows[0], 16, 1)))
	require.EqualValues(t, 10, reachable(l.PeerAddress(windows[0], 16, 0)))

	// A call, so that there are queues to give back.
	both := func(f func(g, c uintptr, i int) error) {
		g := l.GroupStart()
		for i, c := range comms {
			require.NoError(t, f(g, c, i))
		}
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
	}
	both(func(g, c uintptr, i int) error {
		if i == 0 {
			return l.Do(g, c, &Call{Kind: ringo.KindSend, In: at[0], Count: 1024, Type: int32Type, Peer: 1})
		}
		return l.Do(g, c, &Call{Kind: ringo.KindRecv, Out: at[1], Count: 1024, Type: int32Type, Peer: 0})
	})
	stat := func(which int) uint64 {
		n, err := l.MemStats(comms[0], which)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, stat(memSuspended))
	require.Positive(t, stat(memPersist))
	require.Equal(t, stat(memTotal), stat(memSuspend)+stat(memPersist))
	total := stat(memTotal)
	for i := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.Synchronize(0))
	}
	both(func(g, c uintptr, _ int) error { return l.Suspend(g, c, suspendMemory) })
	require.EqualValues(t, 1, stat(memSuspended))
	require.Equal(t, total, stat(memTotal), "what it has, or has given back")
	require.ErrorIs(t, l.Do(0, comms[0], &Call{Kind: ringo.KindAllReduce, In: at[0], Out: at[0], Count: 1,
		Type: int32Type}), errSuspended)
	both(func(g, c uintptr, _ int) error { return l.Resume(g, c) })
	require.Zero(t, stat(memSuspended))
	both(func(g, c uintptr, i int) error {
		return l.Do(g, c, &Call{Kind: ringo.KindAllReduce, In: at[i], Out: at[i], Count: 1, Type: int32Type})
	})
	for i, c := range comms {
		d, err := l.device(i)
		require.NoError(t, err)
		require.NoError(t, d.Synchronize(0))
		require.NoError(t, l.MemFree(at[i]))
		require.NoError(t, l.Destroy(c))
	}
	require.NoError(t, l.machine.Close(), "no race, no leak")
}

// TestWrongInGroup: the end of a group reports the error of a wrong call in it.
func TestWrongInGroup(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	c := comms[0]
	for says, call := range map[string]func(g uintptr) error{
		"data type 99 is not in 0…11": func(g uintptr) error {
			return l.Do(g, c,
				&Call{Kind: ringo.KindAllReduce, Type: 99})
		},
		"peer 9 of 2 ranks": func(g uintptr) error { return l.PutSignal(g, c, &Put{Peer: 9}) },
		"1 signals of peer 9 of 2 ranks": func(g uintptr) error {
			return l.WaitSignal(g, c, []Arrival{{Peer: 9, Count: 1}}, 0)
		},
		"ncclCommShrink that excludes nobody": func(g uintptr) error {
			return second(l.Shrink(g, c, nil,
				nil, 0))
		},
		"2 ranks cannot become 1": func(g uintptr) error {
			return second(l.Grow(g, c, 1, nil,
				-1, nil))
		},
		"rank 5 of 2": func(g uintptr) error {
			return second(l.InitRank(g, 2, 5,
				nil, nil))
		},
		"a window begins at a multiple of 4096": func(g uintptr) error {
			return second(l.WindowRegister(g, c,
				0x10001, 1))
		},
		"has no flags but NCCL_SUSPEND_MEM, not 7":               func(g uintptr) error { return l.Suspend(g, c, 7) },
		"ncclCommResume of a communicator that is not suspended": func(g uintptr) error { return l.Resume(g, c) },
		"ncclDevCommCreate: unsupported":                         func(g uintptr) error { return l.Resource(g, c, 1, nil) },
		"0x63 is no communicator":                                func(g uintptr) error { return l.Finalize(g, 99) },
		"0x62 is no communicator": func(g uintptr) error {
			return second(l.Split(g, 98, 0, 0,
				nil))
		},
	} {
		g := l.GroupStart()
		first := call(g)
		require.Error(t, first, says)
		_, err := l.GroupEnd(g)
		require.Equal(t, first, err, says)
	}
	destroy(t, l, comms...)
}
