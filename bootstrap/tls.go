package bootstrap

import "github.com/ringo-go/ringo/internal/secure"

// A TLS says that connections go over TLS 1.3, and who shows which certificate.
type TLS = secure.Config

// NewTLS makes a TLS of a certificate, its key and the certificates that others' must be signed
// by: files in PEM. With all three "" the job's key alone says who takes part. It costs about a
// millisecond. Hand it to Join and to what serves the ID.
func NewTLS(cert, key, ca string) (*TLS, error) { return secure.New(cert, key, ca) }
