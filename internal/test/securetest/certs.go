// Package securetest makes certificates for tests. The trap: their keys are files that anybody
// may read.
package securetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Files are a certificate, its key, and the CA's certificate: names of files in PEM.
type Files struct{ Cert, Key, CA string }

// Make makes a new CA, and a certificate signed by it.
func Make(t testing.TB, name string) (f Files) {
	dir := t.TempDir()
	write := func(file, kind string, der []byte) string {
		file = filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	make := func(ca *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour),
			IsCA:     ca == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		if ca == nil {
			ca, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, by)
		require.NoError(t, err)
		c, err = x509.ParseCertificate(der)
		require.NoError(t, err)
		return c, key
	}
	ca, by := make(nil, nil)
	leaf, key := make(ca, by)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return Files{write("cert.pem", "CERTIFICATE", leaf.Raw), write("key.pem", "EC PRIVATE KEY", der),
		write("ca.pem", "CERTIFICATE", ca.Raw)}
}
