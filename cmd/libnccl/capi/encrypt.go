package capi

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// Modes of ncclSetEncryption, and the sizes of keys.
const (
	inClear   = 0
	byKey     = 1
	shortest  = 32 // bytes of a key
	keyAt     = 4  // of an ID, see bootstrap.ID
	keyLength = 32
)

// SetEncryption decides how communicators made from now on use TCP: with byKey over TLS, by a key of at least 32 bytes
// that all processes give; with inClear without TLS.
func (l *Library) SetEncryption(mode int, key string) error {
	switch {
	case mode == inClear:
		key = ""
	case mode != byKey:
		return fmt.Errorf("%w: ncclSetEncryption: mode %d is neither NCCL_ENCRYPTION_MODE_NONE nor NCCL_ENCRYPTION_MODE_PSK",
			ringo.ErrInvalid, mode)
	case len(key) < shortest:
		return fmt.Errorf("%w: ncclSetEncryption: a key of %d bytes: want %d random ones or more", ringo.ErrInvalid, len(key),
			shortest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key = key
	return nil
}

// setting is a setting of the environment. RINGO_TLS is "1" if the program has given a key to SetEncryption.
func (l *Library) setting(name string) string {
	if name == "RINGO_TLS" && l.key != "" {
		return "1"
	}
	return l.env.get(name)
}

// sealed is the ID with its key combined with the program's own key, as it travels through the program: only processes
// that know the program's key can take part. Sealing a sealed ID gives the original back.
func (l *Library) sealed(id bootstrap.ID) (bootstrap.ID, error) {
	l.mu.Lock()
	key := l.key
	l.mu.Unlock()
	if key == "" {
		return id, nil
	}
	cover, err := hkdf.Key(sha256.New, []byte(key), []byte(id.Addr()), "ringo ncclSetEncryption", keyLength)
	if err != nil {
		return id, err
	}
	subtle.XORBytes(cover, cover, id[keyAt:keyAt+keyLength])
	return bootstrap.IDOf(id.Addr(), cover)
}
