package bootstrap

import "github.com/ringo-go/ringo/internal/secure"

// A TLS makes connections go over TLS 1.3, and holds the certificates, if there are any.
type TLS = secure.Config

// NewTLS makes a TLS from three PEM files: a certificate, its key, and the certificates by which
// those of others must be signed. With all three "" the job's key alone proves membership. It costs
// about a millisecond. Give the TLS to Join, and to NewID or Serve.
func NewTLS(cert, key, ca string) (*TLS, error) { return secure.New(cert, key, ca) }
