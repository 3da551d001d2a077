package p2p_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

// joinHost opens a span of host memory for a rank.
func joinHost(t *testing.T, d cuda.Driver, rank, device int, process string) (*p2p.HostMemory, *p2p.HostOffer, cuda.Context) {
	t.Helper()
	dev, err := d.DeviceGet(device)
	require.NoError(t, err)
	ctx, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DevicePrimaryCtxRelease(dev)) })
	m := p2p.NewHost(p2p.Config{
		Driver: d, Context: ctx, Device: dev, Bytes: size,
		Self: transport.Info{Rank: rank, Host: "h", Process: process},
	})
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	o, err := p2p.ParseHostOffer(m.Offer())
	require.NoError(t, err)
	require.Empty(t, o.Refused)
	return m, &o, ctx
}

// The devices of a process, and the host, see the same memory.
func TestHostMemory(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	a, ao, _ := joinHost(t, d, 0, 0, "p")
	b, bo, ctx := joinHost(t, d, 1, 1, "p")
	require.NoError(t, p2p.ReachHost(ao, bo))
	addr, err := b.Open(ao)
	require.NoError(t, err)
	copy(a.Bytes(), "from the host")
	require.NoError(t, cuda.With(d, ctx, func() error {
		x, err := d.MemAlloc(13)
		if err != nil {
			return err
		}
		defer d.MemFree(x)
		if err := d.MemcpyDtoD(x, uintptr(addr), 13); err != nil {
			return err
		}
		got := make([]byte, 13)
		err = d.MemcpyDtoH(got, x)
		require.Equal(t, "from the host", string(got))
		return err
	}))
	own, err := a.Open(ao)
	require.NoError(t, err)
	again, err := a.Address()
	require.NoError(t, err)
	require.Equal(t, own, again)
}

func TestReachHost(t *testing.T) {
	offer := func(rank int, change func(*p2p.HostOffer)) *p2p.HostOffer {
		o := &p2p.HostOffer{Info: transport.Info{Rank: rank, Host: "h", Process: "p"}, Bytes: 8}
		if change != nil {
			change(o)
		}
		return o
	}
	for _, test := range []struct {
		name string
		b    func(*p2p.HostOffer)
		want string
	}{
		{"well", nil, ""},
		{"other host", func(o *p2p.HostOffer) { o.Host = "g" }, "ranks 0 and 1 are on different hosts"},
		{"refused", func(o *p2p.HostOffer) { o.Refused = "not wanted" }, "rank 1: not wanted"},
		{"other process without file", func(o *p2p.HostOffer) { o.Process = "q" }, "cannot share host memory with another process"},
		{"other driver without file", func(o *p2p.HostOffer) { o.Driver = "emu" }, "cannot share host memory"},
		{"other size", func(o *p2p.HostOffer) { o.Bytes = 9 }, "share 8 and 9 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := offer(0, nil), offer(1, test.b)
			e1, e2 := p2p.ReachHost(a, b), p2p.ReachHost(b, a)
			if test.want == "" {
				require.NoError(t, e1)
				require.NoError(t, e2)
				return
			}
			require.ErrorContains(t, e1, test.want)
			require.Error(t, e2, "both ends have to come to the same")
		})
	}
}

// A file that is not what was offered is not mapped.
func TestHostMemoryStale(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	d := gputest.Driver(t)
	a, ao, _ := joinHost(t, d, 0, 0, "p")
	b, _, _ := joinHost(t, d, 1, 0, "q")
	for name, change := range map[string]func(*p2p.File){
		"other inode":   func(f *p2p.File) { f.Ino++ },
		"other file":    func(f *p2p.File) { f.FD = 0 },
		"no file":       func(f *p2p.File) { f.FD = 9999 },
		"no process":    func(f *p2p.File) { f.PID = 1 << 30 },
		"other process": func(f *p2p.File) { f.PID = os.Getppid() },
	} {
		o := *ao
		f := *ao.File
		change(&f)
		o.File = &f
		_, err := b.Open(&o)
		require.ErrorContains(t, err, "rank 1 opens host memory of rank 0: ", name)
	}
	o := *ao
	o.Bytes *= 2
	_, err := b.Open(&o)
	require.Error(t, err, "shorter than it says")
	_, err = b.Open(ao)
	require.NoError(t, err)
	require.NotNil(t, a.Bytes())
}

// No room and no wish are refusals, not failures.
func TestHostMemoryRefused(t *testing.T) {
	d := gputest.Driver(t)
	for _, cfg := range []p2p.Config{{Driver: d, Bytes: 64, Refused: "not wanted"}, {Driver: d, Bytes: 1 << 60}, {Driver: d, Bytes: 64}} {
		m := p2p.NewHost(cfg)
		o, err := p2p.ParseHostOffer(m.Offer())
		require.NoError(t, err)
		require.NotEmpty(t, o.Refused)
		require.Nil(t, m.Bytes())
		_, err = m.Address()
		require.ErrorContains(t, err, o.Refused)
		require.NoError(t, m.Close())
	}
	_, err := p2p.ParseHostOffer([]byte("{"))
	require.Error(t, err)
}

func FuzzParseHostOffer(f *testing.F) {
	f.Add([]byte(`{"Rank":1,"Addr":5,"File":{"PID":3}}`))
	f.Fuzz(func(t *testing.T, b []byte) { p2p.ParseHostOffer(b) })
}

const hostChildVar = "RINGO_TEST_HOST_CHILD"

// TestHostMemoryTwoProcesses has a child write into this process's span.
func TestHostMemoryTwoProcesses(t *testing.T) {
	if blob := os.Getenv(hostChildVar); blob != "" {
		hostChild(t, blob)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	d := gputest.Driver(t)
	m, _, _ := joinHost(t, d, 0, 0, "parent")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHostMemoryTwoProcesses$")
	cmd.Env = append(os.Environ(), hostChildVar+"="+base64.StdEncoding.EncodeToString(m.Offer()))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	for s := bufio.NewScanner(out); s.Scan() && !strings.HasPrefix(s.Text(), "written"); {
		t.Log(s.Text())
	}
	require.Equal(t, "from the child's device", string(m.Bytes()[:23]))
	require.NoError(t, cmd.Wait())
}

func hostChild(t *testing.T, offer string) {
	d := gputest.Driver(t)
	m, _, ctx := joinHost(t, d, 1, 0, "child")
	blob, err := base64.StdEncoding.DecodeString(offer)
	require.NoError(t, err)
	peer, err := p2p.ParseHostOffer(blob)
	require.NoError(t, err)
	addr, err := m.Open(&peer)
	require.NoError(t, err)
	text := []byte("from the child's device")
	require.NoError(t, cuda.With(d, ctx, func() error {
		x, err := d.MemAlloc(len(text))
		if err != nil {
			return err
		}
		defer d.MemFree(x)
		if err := cuda.Write(d, x, text); err != nil {
			return err
		}
		if err := d.MemcpyDtoD(uintptr(addr), x, len(text)); err != nil {
			return err
		}
		return d.CtxSynchronize()
	}))
	fmt.Println("written")
}
