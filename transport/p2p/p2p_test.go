package p2p_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

const size = 1 << 16

// join opens a span of a device for a rank.
func join(t *testing.T, d cuda.Driver, rank, device int, process string) (*p2p.Memory, *p2p.Offer, cuda.Context) {
	t.Helper()
	dev, err := d.DeviceGet(device)
	require.NoError(t, err)
	ctx, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DevicePrimaryCtxRelease(dev)) })
	m, err := p2p.New(p2p.Config{
		Driver: d, Context: ctx, Device: dev, Bytes: size,
		Self: transport.Info{Rank: rank, Host: "h", Process: process},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	o, err := p2p.ParseOffer(m.Offer())
	require.NoError(t, err)
	return m, &o, ctx
}

func TestSameProcess(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	a, ao, actx := join(t, d, 0, 0, "p")
	b, bo, bctx := join(t, d, 1, 1, "p")
	c, co, _ := join(t, d, 2, 1, "p") // two ranks on one device
	for _, pair := range [][2]*p2p.Offer{{ao, bo}, {bo, ao}, {bo, co}, {ao, ao}} {
		require.NoError(t, p2p.Reach(pair[0], pair[1]))
	}
	own, err := a.Open(ao)
	require.NoError(t, err)
	peer, err := b.Open(ao)
	require.NoError(t, err)
	require.Equal(t, own, peer, "addresses are unified in a process")
	again, err := b.Open(ao)
	require.NoError(t, err)
	require.Equal(t, peer, again)
	_, err = c.Open(bo)
	require.NoError(t, err)

	require.NoError(t, cuda.With(d, actx, func() error { return cuda.Write(d, uintptr(own), []byte("from rank 0")) }))
	got := make([]byte, 11)
	require.NoError(t, cuda.With(d, bctx, func() error { return d.MemcpyDtoH(got, uintptr(peer)) }))
	require.Equal(t, "from rank 0", string(got))
}

func TestReach(t *testing.T) {
	offer := func(rank int, change func(*p2p.Offer)) *p2p.Offer {
		o := &p2p.Offer{Info: transport.Info{Rank: rank, Host: "h", Process: "p"}, UUID: fmt.Sprint(rank), Reaches: []string{"0", "1"}, Bytes: 8}
		if change != nil {
			change(o)
		}
		return o
	}
	for _, test := range []struct {
		name string
		b    func(*p2p.Offer)
		want string
	}{
		{"well", nil, ""},
		{"other host", func(o *p2p.Offer) { o.Host = "g" }, "ranks 0 and 1 are on different hosts"},
		{"refused", func(o *p2p.Offer) { o.Refused = "RINGO_P2P_DISABLE is set" }, "rank 1: RINGO_P2P_DISABLE is set"},
		{"no link", func(o *p2p.Offer) { o.Reaches = []string{"1"} }, "the GPU of rank 1 does not reach that of rank 0"},
		{"other process without handle", func(o *p2p.Offer) { o.Process = "q"; o.NoIPC = "no IPC here" }, "cannot hand its memory to another process"},
		{"other driver without handle", func(o *p2p.Offer) { o.Driver = "emu" }, "cannot hand its memory to another process"},
		{"other size", func(o *p2p.Offer) { o.Bytes = 9 }, "share 8 and 9 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := offer(0, nil), offer(1, test.b)
			e1, e2 := p2p.Reach(a, b), p2p.Reach(b, a)
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

func TestRefused(t *testing.T) {
	d := gputest.Driver(t)
	dev, err := d.DeviceGet(0)
	require.NoError(t, err)
	ctx, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	m, err := p2p.New(p2p.Config{Driver: d, Context: ctx, Device: dev, Bytes: 64, Refused: "not wanted"})
	require.NoError(t, err)
	o, err := p2p.ParseOffer(m.Offer())
	require.NoError(t, err)
	require.Equal(t, "not wanted", o.Refused)
	require.Nil(t, o.Handle)
	require.NotZero(t, m.Address(), "the rank has memory for itself")
	require.NoError(t, m.Close())
	require.NoError(t, d.DevicePrimaryCtxRelease(dev))
	_, err = p2p.ParseOffer([]byte("{"))
	require.Error(t, err)
	_, err = p2p.ParseOffer([]byte(`{"Handle":"AAAA"}`))
	require.ErrorContains(t, err, "a handle of 3 bytes")
}

func FuzzParseOffer(f *testing.F) {
	f.Add([]byte(`{"Rank":1,"UUID":"00","Handle":""}`))
	f.Fuzz(func(t *testing.T, b []byte) { p2p.ParseOffer(b) })
}

const childVar = "RINGO_TEST_P2P_CHILD"

// TestTwoProcesses has a child on the last device write into this process's
// span, and this process read the child's.
func TestTwoProcesses(t *testing.T) {
	if os.Getenv(childVar) != "" {
		child(t)
		return
	}
	d := gputest.Driver(t, gputest.Devices(2))
	m, _, ctx := join(t, d, 0, 0, "parent")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestTwoProcesses$")
	cmd.Env = append(os.Environ(), childVar+"="+base64.StdEncoding.EncodeToString(m.Offer()))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	var offer []byte
	for s := bufio.NewScanner(out); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "offer "); ok {
			offer, err = base64.StdEncoding.DecodeString(text)
			require.NoError(t, err)
			break
		}
		t.Log(s.Text())
	}
	peer, err := p2p.ParseOffer(offer)
	require.NoError(t, err)
	addr, err := m.Open(&peer)
	require.NoError(t, err)
	mine, theirs := make([]byte, 8), make([]byte, 8)
	own, err := p2p.ParseOffer(m.Offer())
	require.NoError(t, err)
	require.NoError(t, cuda.With(d, ctx, func() error {
		if err := d.MemcpyDtoH(mine, uintptr(own.Addr)); err != nil {
			return err
		}
		return d.MemcpyDtoH(theirs, uintptr(addr))
	}))
	require.Equal(t, "to you..", string(mine))
	require.Equal(t, "of mine.", string(theirs))
	require.NoError(t, m.Close())
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

func child(t *testing.T) {
	d := gputest.Driver(t, gputest.Devices(2))
	m, own, ctx := join(t, d, 1, 1, "child")
	blob, err := base64.StdEncoding.DecodeString(os.Getenv(childVar))
	require.NoError(t, err)
	peer, err := p2p.ParseOffer(blob)
	require.NoError(t, err)
	require.NoError(t, p2p.Reach(own, &peer))
	addr, err := m.Open(&peer)
	require.NoError(t, err)
	require.NoError(t, cuda.With(d, ctx, func() error {
		if err := cuda.Write(d, uintptr(addr), []byte("to you..")); err != nil {
			return err
		}
		return cuda.Write(d, uintptr(own.Addr), []byte("of mine."))
	}))
	fmt.Println("offer", base64.StdEncoding.EncodeToString(m.Offer()))
	bufio.NewReader(os.Stdin).ReadString('\n') // until the parent is done
}
