package capi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	_ "github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// with is a library whose environment is a map.
func with(env map[string]string) *Library {
	return New(func(name string) string { return env[name] }, func() string { return "here" }, func() int { return -1 })
}

func onHost() *Library { return with(map[string]string{"RINGO_HOST": "1"}) }

// onGPUs is a library on n emulated GPUs.
func onGPUs(t *testing.T, n int) *Library {
	t.Helper()
	l := with(nil)
	var err error
	l.machine, err = gpu.Open(gpu.Options{Emulate: n})
	require.NoError(t, err)
	return l
}

// initAll makes communicators of n ranks of this process, on the GPUs of some numbers, or on the first ones.
func initAll(t *testing.T, l *Library, n int, gpus ...int) []uintptr {
	t.Helper()
	comms, err := l.InitAll(n, gpus)
	require.NoError(t, err)
	return comms
}

func destroy(t *testing.T, l *Library, comms ...uintptr) {
	t.Helper()
	for _, c := range comms {
		require.NoError(t, l.Destroy(c))
	}
}

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

const (
	int32Type = 2
	sumOp     = 0
)

func allReduce(data []int32) *Call {
	return &Call{Kind: ringo.KindAllReduce, In: address(data), Out: address(data), Count: uint64(len(data)),
		Type: int32Type, Op: sumOp}
}

func TestGroupsOfTwoThreads(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	data := [][]int32{{1, 2}, {10, 20}}
	mine := l.GroupStart()
	other := l.GroupStart()
	require.NotEqual(t, mine, other)
	for i, c := range comms {
		require.NoError(t, l.Do(mine, c, allReduce(data[i])))
	}
	left, err := l.GroupEnd(other)
	require.NoError(t, err)
	require.Zero(t, left)
	require.Equal(t, []int32{1, 2}, data[0], "the other group was not this one")

	left, err = l.GroupEnd(mine)
	require.NoError(t, err)
	require.Zero(t, left)
	require.Equal(t, [][]int32{{11, 22}, {11, 22}}, data)
	_, err = l.GroupEnd(mine)
	require.ErrorContains(t, err, "is no group")
	destroy(t, l, comms...)
}

// TestCallsAllocateNothing: neither single calls nor groups allocate, once a group has been as long before.
func TestCallsAllocateNothing(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 1)
	call := allReduce(make([]int32, 4))
	require.NoError(t, l.Do(0, comms[0], call))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := l.Do(0, comms[0], call); err != nil {
			panic(err)
		}
	}))
	require.NoError(t, l.Destroy(comms[0]))
}

func TestGroupThatFailedLeavesNothing(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 1)
	data := []int32{1}
	g := l.GroupStart()
	wrong := allReduce(data)
	wrong.Type = 99
	require.NoError(t, l.Do(g, comms[0], allReduce(data)))
	require.ErrorContains(t, l.Do(g, comms[0], wrong), "data type 99")
	require.NoError(t, l.Do(g, comms[0], allReduce(data)))
	_, err := l.GroupEnd(g)
	require.ErrorContains(t, err, "data type 99")
	for range 3 { // groups are used again
		g = l.GroupStart()
		require.NoError(t, l.Do(g, comms[0], allReduce(data)))
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
	}
	require.NoError(t, l.Destroy(comms[0]))
}

func TestLastError(t *testing.T) {
	l := onHost()
	require.Empty(t, l.LastError(0))
	comms := initAll(t, l, 2)
	l.Note(errors.New("something else"))
	require.Equal(t, "something else", l.LastError(comms[0]))
	require.NoError(t, l.Abort(comms[1]))
	require.ErrorContains(t, l.Do(0, comms[0], allReduce(make([]int32, 1))), "rank 1")
	state, _, err := l.AsyncError(comms[0])
	require.NoError(t, err)
	require.Equal(t, RemoteError, state)
	require.Contains(t, l.LastError(comms[0]), "rank 1")
	require.NoError(t, l.Destroy(comms[0]))
}

// TestGrow has two ranks become three.
func TestGrow(t *testing.T) {
	l := onHost()
	comms := initAll(t, l, 2)
	id, err := l.GrowID(comms[1])
	require.NoError(t, err)
	_, err = l.Grow(0, comms[0], 2, nil, -1, nil)
	require.ErrorContains(t, err, "2 ranks cannot become 2")
	g := l.GroupStart()
	var grown [3]uintptr
	grown[0], err = l.Grow(g, comms[0], 3, nil, -1, nil)
	require.NoError(t, err)
	grown[1], err = l.Grow(g, comms[1], 3, &id, -1, nil)
	require.NoError(t, err)
	grown[2], err = l.Grow(g, 0, 3, &id, 2, nil)
	require.NoError(t, err)
	_, err = l.GroupEnd(g)
	require.NoError(t, err)
	for rank, c := range grown {
		got, err := l.UserRank(c)
		require.NoError(t, err)
		require.Equal(t, rank, got)
		require.NoError(t, l.Destroy(c))
	}
	destroy(t, l, comms...)
}

func TestMeetingOfNCCLCommID(t *testing.T) {
	t.Parallel()
	l := with(map[string]string{"RINGO_HOST": "1", "NCCL_COMM_ID": "127.0.0.1:29811", "RINGO_COMM_SECRET": rand.Text()})
	id, err := l.UniqueID()
	require.NoError(t, err)
	again, err := l.UniqueID()
	require.NoError(t, err)
	require.Equal(t, id, again, "all ranks make the same")
	require.Equal(t, "127.0.0.1:29811", id.Addr())
	both := func(make func(g uintptr, rank int) (uintptr, error)) (comms [2]uintptr) {
		g := l.GroupStart()
		for i := range comms {
			comms[i], err = make(g, i)
			require.NoError(t, err)
			_, err = l.Count(comms[i])
			require.ErrorContains(t, err, "not ready")
		}
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
		for i, c := range comms {
			rank, err := l.UserRank(c)
			require.NoError(t, err)
			require.Equal(t, i, rank)
		}
		return comms
	}
	first := both(func(g uintptr, rank int) (uintptr, error) { return l.InitRank(g, 2, rank, []bootstrap.ID{id}, nil) })
	second := both(func(g uintptr, rank int) (uintptr, error) { return l.InitRank(g, 2, rank, []bootstrap.ID{id}, nil) })
	_, err = l.Shrink(0, first[0], nil, nil, 0)
	require.ErrorContains(t, err, "excludes nobody")
	shrunk, err := l.Shrink(0, first[1], []int{0}, nil, 0)
	require.NoError(t, err)
	destroy(t, l, append(slices.Concat(first[:], second[:]), shrunk)...)
}

// TestGPUs reduces on emulated GPUs by one thread, whose current device stays what it is.
func TestGPUs(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2, 1, 0)
	n, err := l.Device(comms[0])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	var at [2]uintptr
	var devices [2]*gpu.Device
	for i, number := range []int{1, 0} {
		devices[i], err = l.device(number)
		require.NoError(t, err)
		require.NoError(t, devices[i].With(func() (err error) { // as cudaSetDevice
			at[i], err = l.MemAlloc(100)
			return err
		}))
		require.Zero(t, at[i]%windowAlign)
		require.NoError(t, devices[i].Write(mem.Device(number, at[i], 4), []byte{byte(i + 1), 0, 0, 0}))
	}
	var windows [2]uintptr
	for range 2 { // the memory may be registered anew when both have given it up
		g := l.GroupStart()
		for i, c := range comms {
			windows[i], err = l.WindowRegister(g, c, at[i], 2<<20)
			require.NoError(t, err)
		}
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
		for i, c := range comms {
			require.NoError(t, l.Deregister(c, windows[i]))
			require.ErrorContains(t, l.Deregister(c, windows[i]), "is no window")
		}
	}
	for range 2 {
		g := l.GroupStart()
		for i, c := range comms {
			call := Call{Kind: ringo.KindAllReduce, In: at[i], Out: at[i], Count: 1, Type: int32Type, Op: sumOp}
			require.NoError(t, l.Do(g, c, &call))
		}
		_, err = l.GroupEnd(g)
		require.NoError(t, err)
	}
	for i, d := range devices {
		require.NoError(t, d.Synchronize(0))
		got := make([]byte, 4)
		require.NoError(t, d.Read(got, mem.Device(d.Number(), at[i], 4)))
		require.Equal(t, []byte{6, 0, 0, 0}, got)
		require.ErrorContains(t,
			l.Do(0, comms[i], &Call{Kind: ringo.KindAllReduce, In: 0x5000, Out: 0x5000, Count: 1, Type: int32Type}),
			"no memory of a GPU")
	}
	_, err = devices[0].Driver().CtxGetDevice()
	require.ErrorIs(t, err, cuda.ErrInvalidContext, "no device has been made current")
	for _, p := range at { // the other rank may still have it open
		require.NoError(t, l.MemFree(p))
	}
	for i, c := range comms {
		require.Len(t, l.late, 2-i)
		require.NoError(t, l.Destroy(c))
	}
	require.Empty(t, l.late)
	require.NoError(t, l.machine.Close(), "no race, no leak")
}

func TestConfig(t *testing.T) {
	whole := undefined
	whole.size, whole.magic, whole.version = unsafe.Sizeof(whole), configMagic, 22809
	name := []byte("Socket\x00more")
	read := func(change func(*configFields)) (*Config, error) {
		f := whole
		if change != nil {
			change(&f)
		}
		return ReadConfig(uintptr(unsafe.Pointer(&f)))
	}
	c, err := ReadConfig(0)
	require.NoError(t, err)
	require.Nil(t, c)
	c, err = read(nil)
	require.NoError(t, err)
	require.Equal(t, &Config{Blocking: true}, c)
	c, err = read(func(f *configFields) { f.blocking, f.maxCTAs, f.netName = 0, 16, addressOf(name) })
	require.NoError(t, err)
	require.Equal(t, &Config{MaxCTAs: 16, Net: "Socket"}, c)
	c, err = read(func(f *configFields) { f.minCTAs, f.maxCTAs, f.ctaPolicy, f.size = 2, 2, 1, math.MaxUint })
	require.NoError(t, err)
	require.Equal(t, &Config{Blocking: true, MinCTAs: 2, MaxCTAs: 2, Policy: "1"}, c)
	c, err = read(func(f *configFields) { f.size, f.maxCTAs = unsafe.Offsetof(f.maxCTAs), -7 })
	require.NoError(t, err)
	require.Equal(t, &Config{Blocking: true}, c, "what is behind an old one's end is not read")
	for want, change := range map[string]func(*configFields){
		"magic":                                 func(f *configFields) { f.magic++ },
		"size is 3":                             func(f *configFields) { f.size = 3 },
		"size is 15":                            func(f *configFields) { f.size = 15 },
		"minCTAs is 9, maxCTAs 8":               func(f *configFields) { f.minCTAs, f.maxCTAs = 9, 8 },
		"minCTAs is 1 and maxCTAs is not set: ": func(f *configFields) { f.minCTAs = 1 },
	} {
		_, err := read(change)
		require.ErrorIs(t, err, ringo.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// TestConfigValues: each field takes the values that NCCL 2.28 takes, and no others. What a program of a version
// without the field has there counts for nothing.
func TestConfigValues(t *testing.T) {
	most := int32(math.MaxInt32)
	wrong := map[string][]int32{"blocking": {unset + 1, -1, 2}, "cgaClusterSize": {unset + 1, -1}, "minCTAs": {-1, 0},
		"maxCTAs": {-1, 0}, "splitShare": {-1, 2}, "collnetEnable": {-1, 2}, "CTAPolicy": {-1, 4, 7}, "shrinkShare": {-1, 2},
		"nvlsCTAs": {-1, 0}, "nChannelsPerNetPeer": {-1, 0, 65, most}, "nvlinkCentricSched": {-1, 2}}
	right := map[string][]int32{"blocking": {0, 1}, "cgaClusterSize": {0, 9, most}, "minCTAs": {1, 100},
		"maxCTAs": {1, most}, "splitShare": {0, 1}, "collnetEnable": {0, 1}, "CTAPolicy": {0, 2}, "shrinkShare": {0, 1},
		"nvlsCTAs":            {1, most},
		"nChannelsPerNetPeer": {1, 64}, "nvlinkCentricSched": {0, 1}}
	require.Len(t, configTable, len(wrong))
	for _, field := range configTable {
		read := func(v int32, version uint32) error {
			f := undefined
			f.size, f.magic, f.version = unsafe.Sizeof(f), configMagic, version
			if field.name == "minCTAs" {
				f.maxCTAs = most
			}
			*field.of(&f) = v
			return second(ReadConfig(uintptr(unsafe.Pointer(&f))))
		}
		for _, v := range append(right[field.name], unset) {
			require.NoError(t, read(v, 22809), "%s %d", field.name, v)
		}
		for _, v := range wrong[field.name] {
			err := read(v, max(field.since, 21801))
			require.ErrorContains(t, err, fmt.Sprintf("%s is %d, want ", field.name, v))
			require.Equal(t, InvalidArgument, ResultOf(err))
			if field.since > 0 {
				require.NoError(t, read(v, field.since-1), field.name)
			}
		}
	}
}

func TestResults(t *testing.T) {
	for want, errs := range map[Result][]error{
		Success:            {nil},
		InProgress:         {errInProgress},
		InvalidArgument:    {ringo.ErrInvalid, &gpu.MemoryError{}},
		InvalidUsage:       {errUsage, ringo.ErrUnsupported, ringo.ErrClosed, ringo.ErrMismatch},
		RemoteError:        {ringo.ErrPeer, ringo.ErrLeft, ringo.ErrTimeout},
		InternalError:      {ringo.ErrAborted},
		UnhandledCudaError: {&cuda.Error{}, &cuda.Unavailable{}, &cudaError{errors.New("x")}},
		SystemError:        {errors.New("x")},
	} {
		for _, err := range errs {
			if err != nil && err != errInProgress {
				err = &ringo.Error{Op: "AllReduce", Err: fmt.Errorf("why: %w", err)}
			}
			require.Equal(t, want, ResultOf(err), "%v", err)
		}
	}
}

func TestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "%h.%p.log")
	open := func(level, subsys string) string {
		env := map[string]string{"RINGO_HOST": "1", "NCCL_DEBUG": level, "NCCL_DEBUG_SUBSYS": subsys, "NCCL_DEBUG_FILE": file}
		l := with(env)
		comms := initAll(t, l, 2)
		l.Note(errors.New("what is wrong"))
		destroy(t, l, comms...)
		host, err := os.Hostname()
		require.NoError(t, err)
		name := strings.NewReplacer("%h", host, "%p", fmt.Sprint(os.Getpid())).Replace(file)
		text, err := os.ReadFile(name)
		if level == "" {
			require.ErrorIs(t, err, os.ErrNotExist)
			return ""
		}
		require.NoError(t, err)
		require.NoError(t, os.Remove(name))
		for line := range strings.Lines(string(text)) {
			require.Regexp(t, `^[^ :]+:\d+:\d+ \[\d+\] NCCL (version|INFO|WARN|TRACE) .*\n$`, line)
		}
		return string(text)
	}
	require.Empty(t, open("", ""))
	require.Regexp(t, `NCCL version 2\.28\.9, which is Ringo .* in here\n.*NCCL WARN what is wrong\n$`, open("WARN", ""))
	text := open("INFO", "")
	require.Contains(t, text, "NCCL INFO path chosen rank=0")
	require.Regexp(t, `NCCL INFO comm 0x[0-9a-f]+ rank 1 nranks 2 cudaDev 0 - Init COMPLETE\n`, text)
	require.Regexp(t, `NCCL INFO comm 0x[0-9a-f]+ rank 1 nranks 2 cudaDev 0 - Destroy COMPLETE\n`, text)
	require.NotContains(t, open("INFO", "NET"), "NCCL INFO path chosen")
}

// TestGPUsThatDisagree: who asks for no error is given it once, by Finalize, by Destroy, or by the next call.
func TestGPUsThatDisagree(t *testing.T) {
	for _, end := range []func(l *Library, c uintptr) error{
		func(l *Library, c uintptr) error { return l.Finalize(0, c) },
		(*Library).Destroy,
		func(l *Library, c uintptr) error {
			return l.Do(0, c, &Call{Kind: ringo.KindAllReduce, Type: int32Type, Op: sumOp})
		},
	} {
		l := onGPUs(t, 2)
		comms := initAll(t, l, 2)
		var at [2]uintptr
		require.NoError(t, all(t, l, comms, func(g, c uintptr, rank int) error {
			d, err := l.device(rank)
			require.NoError(t, err)
			require.NoError(t, d.With(func() (err error) { at[rank], err = l.MemAlloc(100); return err }))
			return l.Do(g, c, &Call{Kind: ringo.KindAllReduce, In: at[rank], Out: at[rank], Count: uint64(1 + rank),
				Type: int32Type, Op: sumOp})
		}))
		for rank, c := range comms {
			d, err := l.device(rank)
			require.NoError(t, err)
			require.NoError(t, d.Synchronize(0), "which knows nothing of it")
			ring, err := l.comms.Get(c)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return ring.opened().Failure() != nil }, tier.Patience, time.Millisecond)
			require.ErrorIs(t, end(l, c), ringo.ErrMismatch)
			if _, err = l.comms.Get(c); err == nil {
				require.NoError(t, l.Destroy(c), "it was said")
			}
		}
		require.NoError(t, errors.Join(l.MemFree(at[0]), l.MemFree(at[1])))
	}
}

// TestRecvOnGPUs: the error of a Recv of another length than its Send names the Recv.
func TestRecvOnGPUs(t *testing.T) {
	l := onGPUs(t, 2)
	comms := initAll(t, l, 2)
	var at [2]uintptr
	require.NoError(t, all(t, l, comms, func(g, c uintptr, rank int) error {
		d, err := l.device(rank)
		require.NoError(t, err)
		require.NoError(t, d.With(func() (err error) { at[rank], err = l.MemAlloc(100); return err }))
		call := Call{Kind: ringo.KindSend, In: at[0], Count: 1, Type: int32Type, Peer: 1}
		if rank == 1 {
			call = Call{Kind: ringo.KindRecv, Out: at[1], Count: 2, Type: int32Type, Peer: 0}
		}
		return l.Do(g, c, &call)
	}))
	var why, err error
	require.Eventually(t, func() bool { _, why, err = l.AsyncError(comms[1]); return why != nil }, tier.Patience,
		time.Millisecond)
	require.NoError(t, err)
	require.Regexp(t, "^Recv: rank 1 on .*: recv from rank 0 .*ranks disagree on a message", why.Error())
	for i, c := range comms {
		require.NoError(t, l.Abort(c))
		require.NoError(t, l.MemFree(at[i]))
	}
	l.closing.Wait()
}

// TestOneGPU: two ranks on one GPU are said once of a communicator, to its log and to ringo emulate.
func TestOneGPU(t *testing.T) {
	const text = "two ranks on one GPU: NCCL refuses this with ncclInvalidUsage"
	report, log := filepath.Join(t.TempDir(), "report"), filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(report, nil, 0o600))
	t.Setenv("RINGO_EMULATE_REPORT", report)
	l := onGPUs(t, 2)
	l.env = env{func(name string) string { return map[string]string{"NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": log}[name] }}
	for devices, want := range map[[2]int]int{{0, 1}: 0, {1, 1}: 1} {
		comms := initAll(t, l, 2, devices[:]...)
		destroy(t, l, comms...)
		l.closing.Wait()
		for _, file := range []string{report, log} {
			said, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, want, strings.Count(string(said), text), "%s", said)
			require.NoError(t, os.Truncate(file, 0))
		}
	}
}

// TestConfigOfCTAs: the CTAs of an ncclConfig_t count where the environment does not set them.
func TestConfigOfCTAs(t *testing.T) {
	for _, test := range []struct {
		env         map[string]string
		given       Config
		least, most int
		policy      string
	}{
		{nil, Config{}, 0, 0, ""},
		{nil, Config{MinCTAs: 4, MaxCTAs: 16, Policy: "2"}, 4, 16, "2"},
		{map[string]string{"NCCL_MAX_CTAS": "2", "NCCL_CTA_POLICY": "EFFICIENCY"},
			Config{MinCTAs: 4, MaxCTAs: 16, Policy: "2"}, 2, 2, "EFFICIENCY"},
		{map[string]string{"NCCL_MIN_CTAS": "8"}, Config{MinCTAs: 4}, 8, 0, ""},
		{map[string]string{"NCCL_MIN_CTAS": "8"}, Config{MaxCTAs: 4}, 4, 4, ""},
	} {
		l := with(test.env)
		cfg, _, err := l.completed(&test.given)
		require.NoError(t, err)
		require.Equal(t, []int{test.least, test.most}, []int{cfg.MinBlocks, cfg.MaxBlocks}, "%+v", test)
		require.Equal(t, test.policy, cfg.BlockPolicy)
		_, err = cfg.FromEnv()
		require.NoError(t, err, "it can be opened")
	}
}

func TestTimeouts(t *testing.T) {
	cfg, err := onHost().config()
	require.NoError(t, err)
	require.Equal(t, []time.Duration{operationTime, meetingTime}, []time.Duration{cfg.Timeout, cfg.JoinTimeout})
	cfg, err = with(map[string]string{"RINGO_TIMEOUT": "3s", "RINGO_JOIN_TIMEOUT": "2s"}).config()
	require.NoError(t, err)
	require.Equal(t, []time.Duration{3 * time.Second, 2 * time.Second}, []time.Duration{cfg.Timeout, cfg.JoinTimeout})
}

// TestParameters wants each variable that a file of the module reads among the parameters, and no others.
func TestParameters(t *testing.T) {
	var read []string
	for _, file := range []string{"env.go", "../../../env.go", "../../../log.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code, _, _ := strings.Cut(string(text), "// parameterNames are")
		for _, name := range regexp.MustCompile(`"NCCL_[A-Z0-9_]+"`).FindAllString(code, -1) {
			read = append(read, strings.Trim(name, `"`))
		}
	}
	slices.Sort(read)
	require.Equal(t, slices.Compact(read), Parameters(), "bring parameterNames in env.go up to date")

	l := with(map[string]string{"NCCL_MAX_CTAS": "0x10", "NCCL_NET": "Socket",
		"NCCL_WORK_FIFO_BYTES": "18446744073709551615"})
	value := func(key string, bits int, signed bool) (int64, error) {
		n, err := l.Parameter(key)
		require.NoError(t, err)
		return l.ParameterInt(n, bits, signed)
	}
	v, err := value("MAX_CTAS", 8, true)
	require.NoError(t, err)
	require.EqualValues(t, 16, v)
	v, err = value("NCCL_WORK_FIFO_BYTES", 64, false)
	require.NoError(t, err)
	require.EqualValues(t, -1, v)
	_, err = value("NCCL_WORK_FIFO_BYTES", 64, true)
	require.ErrorContains(t, err, "no integer of 64 bits")
	_, err = value("NCCL_ALGO", 32, true)
	require.ErrorContains(t, err, `NCCL_ALGO="" is no integer`)
	_, err = l.Parameter("NCCL_FAST")
	require.ErrorContains(t, err, `no parameter "NCCL_FAST"`)
	_, err = l.ParameterText(99)
	require.ErrorIs(t, err, ringo.ErrInvalid)
}

// int32s is memory at an address of MemAlloc's.
func int32s(at uintptr, n int) []int32 { return unsafe.Slice((*int32)(pointer(at)), n) }
