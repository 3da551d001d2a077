//go:build !ringo_notls

// Package secure puts TLS 1.3 around a TCP connection, for bootstrap and the transports. Without
// certificates of the user a listener shows one that it has signed itself, which nobody checks:
// the ends prove themselves to each other afterwards by package auth, whose proofs hold for this
// channel alone (Conn.Binding). The trap: before that handshake anybody may be at the other end of
// a Conn, so believe nothing and send no secret earlier.
package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// A Config says how TLS is spoken. It does not change and may be shared.
type Config struct {
	tls   *tls.Config
	named string // see String
}

// New reads a certificate, its key, and the CA's certificates, by which those of peers must be
// signed: all are files in PEM. Both ends of a connection show their certificates. Names in
// certificates do not count, as ranks are reached by addresses: whoever has a certificate of the CA
// and the job's key may take part. With all three files empty, the job's key alone decides who may.
// The errors name environment variables.
func New(cert, key, ca string) (*Config, error) {
	if cert == "" && key == "" && ca == "" {
		return byKey()
	}
	for _, f := range []struct{ variable, file string }{{"RINGO_TLS_CERT", cert}, {"RINGO_TLS_KEY", key},
		{"RINGO_TLS_CA", ca}} {
		if f.file == "" {
			return nil, fmt.Errorf("tls: RINGO_TLS_CERT, RINGO_TLS_KEY and RINGO_TLS_CA go together: %s is missing", f.variable)
		}
	}
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls: RINGO_TLS_CERT=%s, RINGO_TLS_KEY=%s: %w", cert, key, err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("tls: RINGO_TLS_CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls: RINGO_TLS_CA=%s: no certificate in it", ca)
	}
	c := config(own)
	c.ClientAuth = tls.RequireAnyClientCert
	c.VerifyConnection = func(s tls.ConnectionState) error { return signed(s.PeerCertificates, roots) }
	return &Config{c, "by certificates"}, nil
}

func config(own tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13,
		InsecureSkipVerify:     true, // the check of crypto/tls wants a name; see signed, and package auth
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
}

// String says in words who proves what: "by the job's key", "by certificates", and "off" for nil.
func (c *Config) String() string {
	if c == nil {
		return "off"
	}
	return c.named
}

func signed(chain []*x509.Certificate, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return fmt.Errorf("the peer's certificate (%s) is none that RINGO_TLS_CA has signed: %w", chain[0].Subject, err)
	}
	return nil
}

// byKey is the Config of a process without certificates of the user.
var byKey = sync.OnceValues(func() (*Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	now := time.Now()
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0),
		NotAfter: now.AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &Config{config(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}), "by the job's key"}, nil
})

// A Conn is a connection under TLS. Deadlines are those of the connection below. Close sends
// no close_notify: protocols here have words of their own for the end.
type Conn struct {
	net.Conn // below
	tls      *tls.Conn
	wire     *wire
}

// Client does the handshake of the side that dials. After an error conn is still the caller's.
func (c *Config) Client(conn net.Conn) (*Conn, error) { return c.shake(conn, tls.Client) }

// Server does the handshake of the side that listens. After an error conn is still the caller's.
func (c *Config) Server(conn net.Conn) (*Conn, error) { return c.shake(conn, tls.Server) }

func (c *Config) shake(conn net.Conn, side func(net.Conn, *tls.Config) *tls.Conn) (*Conn, error) {
	w := &wire{Conn: conn, rw: conn}
	x := &Conn{conn, side(w, c.tls), w}
	if err := x.tls.Handshake(); err != nil {
		if !strings.HasPrefix(err.Error(), "tls: ") {
			err = fmt.Errorf("tls: %w", err)
		}
		return nil, err
	}
	return x, nil
}

// Read is that of crypto/tls. It may be repeated after a temporary error of the connection below,
// which had no bytes at that moment.
func (c *Conn) Read(b []byte) (int, error) { return c.tls.Read(b) }

// Write is that of crypto/tls.
func (c *Conn) Write(b []byte) (int, error) { return c.tls.Write(b) }

// NetConn is the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the stream to the other side; reading goes on. The error is errors.ErrUnsupported if
// the connection below cannot.
func (c *Conn) CloseWrite() error { return closeWrite(c.Conn) }

// Binding is a secret of this channel alone: a process in the middle, with one channel to each end,
// has two different secrets (RFC 9266).
func (c *Conn) Binding() ([]byte, error) {
	s := c.tls.ConnectionState()
	return s.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
}

// Move has TLS records go over rw from now on. rw.Write must take all bytes.
func (c *Conn) Move(rw io.ReadWriter) { c.wire.rw = rw }

// A wire is the connection that crypto/tls sees; Move changes rw.
type wire struct {
	net.Conn
	rw io.ReadWriter
}

func (w *wire) Read(b []byte) (int, error) { return w.rw.Read(b) }

func (w *wire) Write(b []byte) (int, error) { return w.rw.Write(b) }

// Either is for a listener whose callers may speak TLS (then sealed is true) or not. Their first
// byte tells: a protocol in clear must not begin with 22. With a nil Config callers with TLS are
// answered without certificates of the user.
func (c *Config) Either(conn net.Conn) (_ net.Conn, sealed bool, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, false, err
	}
	p := &peeked{conn, first}
	if first[0] != recordHandshake {
		return p, false, nil
	}
	if c == nil {
		if c, err = New("", "", ""); err != nil {
			return nil, true, err
		}
	}
	x, err := c.Server(p)
	return x, true, err
}

// Altered reports whether TLS has received other bytes than were sent.
func Altered(err error) bool {
	head := tls.RecordHeaderError{}
	return errors.As(err, &head)
}
