package p2p_test

import (
	"bufio"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/p2p"
)

const size = 1 << 16

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A user is a rank on a device.
type user struct {
	*testing.T
	cuda.Driver
	rank    int
	dev     cuda.Device
	ctx     cuda.Context
	process string
}

func newUser(t *testing.T, d cuda.Driver, rank, device int, process string) *user {
	t.Helper()
	dev, ctx := gputest.Context(t, d, device)
	return &user{t, d, rank, dev, ctx, process}
}

func (u *user) config(n int) p2p.Config {
	return p2p.Config{
		Driver: u.Driver, Context: u.ctx, Device: u.dev, Bytes: n,
		Self: transport.Info{Rank: u.rank, Host: "h", Process: u.process},
	}
}

// memory opens a segment of the device until the test's end.
func (u *user) memory() (*p2p.Memory, *p2p.Offer) {
	u.T.Helper()
	m, err := p2p.New(u.config(size))
	require.NoError(u.T, err)
	u.T.Cleanup(func() { require.NoError(u.T, m.Close(true)) })
	o, err := p2p.ParseOffer(m.Offer())
	require.NoError(u.T, err)
	return m, &o
}

// hostMemory opens a segment of host memory until the test's end.
func (u *user) hostMemory() (*p2p.HostMemory, *p2p.HostOffer) {
	u.T.Helper()
	m := p2p.NewHost(u.config(size))
	u.T.Cleanup(func() { require.NoError(u.T, m.Close()) })
	o, err := p2p.ParseHostOffer(m.Offer())
	require.NoError(u.T, err)
	require.Empty(u.T, o.Refused)
	return m, &o
}

func (u *user) do(f func() error) {
	u.T.Helper()
	require.NoError(u.T, cuda.With(u.Driver, u.ctx, f))
}

func (u *user) write(at uint64, text string) {
	u.T.Helper()
	u.do(func() error { return cuda.Write(u.Driver, uintptr(at), []byte(text)) })
}

func (u *user) read(at uint64, n int) string {
	u.T.Helper()
	b := make([]byte, n)
	u.do(func() error { return u.MemcpyDtoH(b, uintptr(at)) })
	return string(b)
}

// A child is a second process of a test, which runs the same test function. Parent
// and child talk in lines.
type child struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

const childVar = "RINGO_TEST_CHILD"

// isChild reports whether this process is a child.
func isChild() bool { return os.Getenv(childVar) != "" }

func newChild(t *testing.T) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childVar+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &child{t, cmd, in, bufio.NewScanner(out)}
}

// say sends bytes, such as an offer.
func (c *child) say(b []byte) {
	c.Helper()
	_, err := io.WriteString(c.in, base64.StdEncoding.EncodeToString(b)+"\n")
	require.NoError(c, err)
}

// hear is the next message of the child.
func (c *child) hear() []byte {
	c.Helper()
	for c.out.Scan() {
		if text, ok := strings.CutPrefix(c.out.Text(), saying); ok {
			return decoded(c.T, text)
		}
		c.Log(c.out.Text())
	}
	require.Fail(c, "the child has ended")
	return nil
}

// end lets the child come to its end, which must be a good one.
func (c *child) end() {
	c.Helper()
	require.NoError(c, c.in.Close())
	for c.out.Scan() {
		c.Log(c.out.Text())
	}
	require.NoError(c, c.cmd.Wait())
}

// A parent is the other end of a child.
type parent struct {
	*testing.T
	in *bufio.Scanner
}

func newParent(t *testing.T) *parent { return &parent{t, bufio.NewScanner(os.Stdin)} }

const saying = "says "

func (p *parent) say(b []byte) {
	os.Stdout.WriteString(saying + base64.StdEncoding.EncodeToString(b) + "\n")
}

// hear is the next message of the parent, nil after the last.
func (p *parent) hear() []byte {
	p.Helper()
	if !p.in.Scan() {
		return nil
	}
	return decoded(p.T, p.in.Text())
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return b
}

// A reachTest is a change of a rank's offer, and why the peer cannot use the offer then, "" if it can.
type reachTest[O any] struct {
	name   string
	change func(*O)
	want   string
}

// bothReach has ranks 0 and 1 look at each other's offers. Both come to the same.
func bothReach[O any](t *testing.T, offer func(rank int) *O, reach func(a, b *O) error, tests []reachTest[O]) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := offer(0), offer(1)
			if test.change != nil {
				test.change(b)
			}
			here, there := reach(a, b), reach(b, a)
			if test.want == "" {
				require.NoError(t, here)
				require.NoError(t, there)
				return
			}
			require.ErrorContains(t, here, test.want)
			require.Error(t, there, "both ends have to come to the same")
		})
	}
}
