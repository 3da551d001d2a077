package bootstrap

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"strings"
)

// An ID is all that a rank must know to join a group: the address of the hub and
// the key that proves membership. It is a secret: whoever has it can join. It has
// the size of an ncclUniqueId.
//
//	0   "RNG", version
//	4   key, 32 bytes
//	36  address of the hub, "host:port", padded with zeros
//	124 CRC-32 (IEEE) of all before, big endian
type ID [128]byte

const (
	idMagic = "RNG"
	version = 3
	idText  = "ringo:" // prefix of String
	keyAt   = len(idMagic) + 1
	addrAt  = keyAt + keyLen
	sumAt   = len(ID{}) - 4
	maxAddr = sumAt - addrAt
)

// IDFor is the ID of the hub at addr ("host:port") for all ranks that know the secret.
// All compute the same ID if they spell addr the same; one of them, normally rank 0,
// must Serve it.
//
// The secret should be random. The key is made of it by 300,000 rounds of
// PBKDF2-HMAC-SHA256, about 60 ms once a process, which makes guesses slow but
// does not make a bad secret good.
func IDFor(addr, secret string) (ID, error) {
	if secret == "" {
		return ID{}, errors.New("id: no secret: set RINGO_COMM_SECRET to the same random text for every rank")
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "0" {
		return ID{}, fmt.Errorf("id: address %q is not host:port", addr)
	}
	key, err := secretKey(addr, secret)
	if err != nil {
		return ID{}, err
	}
	return makeID(addr, key)
}

// IDOf is IDFor for programs that share 32 random bytes already. The bytes are the key; IDOf does not stretch them.
func IDOf(addr string, key []byte) (ID, error) {
	if len(key) != keyLen {
		return ID{}, fmt.Errorf("id: a key of %d bytes: want %d", len(key), keyLen)
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "0" {
		return ID{}, fmt.Errorf("id: address %q is not host:port", addr)
	}
	return makeID(addr, key)
}

func randomID(addr string) (ID, error) {
	key := make([]byte, keyLen)
	rand.Read(key) // never fails
	return makeID(addr, key)
}

func makeID(addr string, key []byte) (id ID, err error) {
	if len(addr) > maxAddr {
		return id, fmt.Errorf("id: address %q is longer than %d bytes: use a shorter name or the IP address", addr, maxAddr)
	}
	if strings.ContainsRune(addr, 0) {
		return id, fmt.Errorf("id: address %q holds a zero byte", addr)
	}
	copy(id[:], idMagic)
	id[len(idMagic)] = version
	copy(id[keyAt:], key)
	copy(id[addrAt:], addr)
	binary.BigEndian.PutUint32(id[sumAt:], id.sum())
	return id, nil
}

// Derive is another ID at the same address. All who know id and purpose compute the same one, without a
// message: the ranks that are left of a group may meet there. A process at the address has to Serve it.
func (id ID) Derive(purpose string) ID {
	key, err := hkdf.Key(sha256.New, id.key(), nil, "ringo id "+purpose, keyLen)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	copy(id[keyAt:], key)
	binary.BigEndian.PutUint32(id[sumAt:], id.sum())
	return id
}

func (id ID) sum() uint32 { return crc32.ChecksumIEEE(id[:sumAt]) }
func (id ID) key() []byte { return id[keyAt:addrAt] }

// Addr is where the hub listens, "host:port".
func (id ID) Addr() string {
	return string(bytes.TrimRight(id[addrAt:sumAt], "\x00"))
}

// Check is nil if these bytes are an ID of this version.
func (id ID) Check() error {
	switch {
	case id == ID{}:
		return errors.New("id: empty")
	case string(id[:len(idMagic)]) != idMagic:
		return errors.New("id: not an ID of ringo (made by another library, or not passed on whole)")
	case id[len(idMagic)] != version:
		return fmt.Errorf("id: made by version %d of ringo's rendezvous, this is version %d: use one version everywhere",
			id[len(idMagic)], version)
	case binary.BigEndian.Uint32(id[sumAt:]) != id.sum():
		return errors.New("id: damaged on its way (checksum)")
	}
	if _, _, err := net.SplitHostPort(id.Addr()); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	return nil
}

// String is the ID as one word for the environment or a command line, about
// 90 characters. It contains the key: do not log it. Of fmt's verbs only %s and %q
// write it.
func (id ID) String() string {
	raw := append(bytes.TrimRight(id[:sumAt], "\x00"), id[sumAt:]...)
	return idText + base64.RawURLEncoding.EncodeToString(raw)
}

// ParseID reads what String wrote.
func ParseID(s string) (id ID, err error) {
	text, ok := strings.CutPrefix(s, idText)
	if !ok {
		return id, fmt.Errorf("id: text does not begin with %q", idText)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return id, errors.New("id: text is not whole (base64)")
	}
	n := len(raw) - 4
	if n < addrAt || n > sumAt {
		return id, errors.New("id: text is too short or too long")
	}
	copy(id[:], raw[:n])
	copy(id[sumAt:], raw[n:])
	if err := id.Check(); err != nil {
		return ID{}, err
	}
	return id, nil
}

// MarshalText is String's text, which contains the key, and empty for the zero ID.
func (id ID) MarshalText() ([]byte, error) {
	if id == (ID{}) {
		return nil, nil
	}
	if err := id.Check(); err != nil {
		return nil, err
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id = ID{}
	if len(text) > 0 {
		*id, err = ParseID(string(text))
	}
	return err
}

// LogValue keeps the key out of logs.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.Addr()) }

// Format keeps the key out of messages: all verbs but %s and %q write the address
// alone, also where the ID is a field of the printed value.
func (id ID) Format(f fmt.State, verb rune) {
	switch verb {
	case 's':
		io.WriteString(f, id.String())
	case 'q':
		fmt.Fprintf(f, "%q", id.String())
	default:
		fmt.Fprintf(f, "ID(%s)", id.Addr())
	}
}
