package capi

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// How ncclSetEncryption has TCP connections.
const (
	inClear   = 0
	byKey     = 1
	shortest  = 32 // bytes of a key
	keyAt     = 4  // of an ID, see bootstrap.ID
	keyLength = 32
)

// SetEncryption has communicators that are made from now on speak TLS, in mode byKey, by a key that all processes give;
// inClear ends that.
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
	l.key, l.base = key, nil // the settings are read again
	return nil
}

// setting gives a setting of the environment, where RINGO_TLS says that connections go over TLS if the program wants
// that.
func (l *Library) setting(name string) string {
	if name == "RINGO_TLS" && l.key != "" {
		return "1"
	}
	return l.env.get(name)
}

// sealed is what an ID becomes on its way through the program: its key is covered by the one that the program has
// given, so that only who knows that one takes part. Sealed twice it is itself.
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
