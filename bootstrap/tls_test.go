package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/securetest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

func newTLS(t *testing.T, f securetest.Files) *TLS {
	c, err := NewTLS(f.Cert, f.Key, f.CA)
	require.NoError(t, err)
	return c
}

// joinBy joins one rank with each TLS in the background.
func joinBy(ctx context.Context, id ID, tls ...*TLS) (all []<-chan joined) {
	for rank, c := range tls {
		done := make(chan joined, 1)
		all = append(all, done)
		go func() {
			g, err := Join(ctx, id, rank, len(tls), JoinOptions{TLS: c, apart: true})
			done <- joined{g, err}
		}()
	}
	return all
}

// Ranks meet over TLS, by the job's key or by certificates, and their messages cannot be read on the
// way; without TLS they can.
func TestTLS(t *testing.T) {
	certs := newTLS(t, securetest.Make(t, "one"))
	byKey := newTLS(t, securetest.Files{})
	for name, test := range map[string]struct{ ranks, hub *TLS }{
		"in clear": {nil, nil}, "by key": {byKey, nil}, "by certificates": {certs, certs},
	} {
		t.Run(name, func(t *testing.T) {
			hub, err := NewID(ListenOptions{Addr: "127.0.0.1:0", TLS: test.hub})
			require.NoError(t, err)
			defer Stop(hub)
			addr, heard := eavesdrop(t, hub.Addr())
			id, err := makeID(addr, hub.key())
			require.NoError(t, err)
			var groups []Group
			for _, j := range joinBy(within(t, 10*time.Second), id, test.ranks, test.ranks) {
				r := <-j
				require.NoError(t, r.err)
				groups = append(groups, r.g)
			}
			const word = "what one rank tells all others"
			var both sync.WaitGroup
			for _, g := range groups {
				both.Go(func() {
					all, err := g.AllGather(context.Background(), []byte(word))
					if err == nil {
						require.Equal(t, word, string(all[1-g.Rank()]))
					}
					require.NoError(t, err)
				})
			}
			both.Wait()
			closeAll(t, groups)
			require.Equal(t, test.ranks == nil, bytes.Contains(heard(), []byte(word)))
		})
	}
}

// eavesdrop passes on connections; heard returns the bytes that went over them.
func eavesdrop(t *testing.T, to string) (addr string, heard func() []byte) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var all bytes.Buffer
	var work sync.WaitGroup
	pass := func(dst, src net.Conn) {
		defer dst.(*net.TCPConn).CloseWrite()
		b := make([]byte, 4096)
		for {
			n, err := src.Read(b)
			mu.Lock()
			all.Write(b[:n])
			mu.Unlock()
			if _, failed := dst.Write(b[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			t.Cleanup(func() { c.Close(); d.Close() })
			work.Go(func() { pass(d, c) })
			work.Go(func() { pass(c, d) })
		}
	})
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String(), func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(all.Bytes())
	}
}

// If some ranks have TLS and others do not, all hear so at once, whichever rank comes first.
func TestTLSDiffers(t *testing.T) {
	byKey := newTLS(t, securetest.Files{})
	for _, first := range []*TLS{nil, byKey} {
		second := byKey
		if first != nil {
			second = nil
		}
		id, _ := hubAt(t)
		begun := time.Now()
		for _, j := range joinBy(within(t, 20*time.Second), id, first, second, first) {
			r := <-j
			var e *JoinError
			require.ErrorAs(t, r.err, &e)
			require.ErrorContains(t, r.err, "set RINGO_TLS")
			require.Regexp(t, `rank \d, process \d+ on .*, asks for TLS and rank \d, .* does not`, r.err.Error())
		}
		require.Less(t, time.Since(begun), 10*time.Second)
	}
}

// A certificate that the hub does not take from a rank, or the rank from the hub, is an error of Join.
func TestCertificateDiffers(t *testing.T) {
	t.Parallel()
	one, other, none := newTLS(t, securetest.Make(t, "one")), newTLS(t, securetest.Make(t, "other")),
		newTLS(t, securetest.Files{})
	for name, test := range map[string]struct {
		rank, hub *TLS
		want      string
	}{
		"other CA":         {one, other, "the peer's certificate (CN=other) is none that RINGO_TLS_CA has signed"},
		"hub has none":     {one, nil, "is none that RINGO_TLS_CA has signed"},
		"rank has none":    {none, one, "remote error: tls: bad certificate"},
		"hub is something": {one, one, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits until its deadline
			var id ID
			var err error
			if test.want == "" {
				addr, _, _ := impostor(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-something\r\n") })
				id, err = randomID(addr)
			} else {
				id, err = NewID(ListenOptions{Addr: "127.0.0.1:0", TLS: test.hub})
				defer Stop(id)
			}
			require.NoError(t, err)
			r := <-joinBy(within(t, tier.Soon(3*time.Second)), id, test.rank)[0]
			var e *JoinError
			require.ErrorAs(t, r.err, &e)
			require.ErrorIs(t, r.err, context.DeadlineExceeded)
			require.ErrorContains(t, r.err, test.want)
			require.ErrorContains(t, r.err, "set RINGO_TLS_CERT")
		})
	}
}

// The error of the try that the deadline cuts off does not replace an earlier one.
func TestLastTryIsCutOff(t *testing.T) {
	var j joiner
	cut := &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}
	j.meets(cut)
	require.Equal(t, error(cut), j.met)
	refused := errors.New("remote error: tls: bad certificate")
	j.meets(refused)
	j.meets(fmt.Errorf("tls: %w", cut))
	require.Equal(t, refused, j.met)
}

// Ranks that all come in clear to a hub with certificates are refused with that reason: the hub slots
// no rank without a certificate.
func TestTLSIsNotOptional(t *testing.T) {
	certs := newTLS(t, securetest.Make(t, "one"))
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", TLS: certs})
	require.NoError(t, err)
	defer Stop(id)
	for _, j := range joinBy(within(t, 20*time.Second), id, nil, nil) {
		r := <-j
		require.ErrorContains(t, r.err,
			"the ranks come without TLS, and what serves the ID has TLS (by certificates): set RINGO_TLS")
	}
}
