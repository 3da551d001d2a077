package bootstrap

import (
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"sync"
)

// keyLen is the number of bytes of a key.
const keyLen = 32

// stretching makes each try at a chosen secret cost about 60 ms of one core.
const stretching = 300_000

// stretched is the key of the last call of secretKey. A process usually has one secret,
// and so pays for stretching once.
var stretched struct {
	sync.Mutex
	addr, secret string
	key          []byte
}

// secretKey makes a key of a secret that a person has chosen, or that is derived from
// names. addr is the salt: a table of guesses is good for one hub only.
func secretKey(addr, secret string) ([]byte, error) {
	s := &stretched
	s.Lock()
	defer s.Unlock()
	if s.key != nil && s.addr == addr && s.secret == secret {
		return s.key, nil
	}
	key, err := pbkdf2.Key(sha256.New, secret, []byte("ringo id "+addr), stretching, keyLen)
	if err != nil {
		return nil, fmt.Errorf("id: %w", err)
	}
	s.addr, s.secret, s.key = addr, secret, key
	return key, nil
}

// groupKey is the key of a group. The salt makes it differ from the keys of all other groups of the same ID.
func groupKey(key []byte, salt [32]byte) []byte {
	k, err := hkdf.Key(sha256.New, key, salt[:], "ringo group", keyLen)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	return k
}
