package bootstrap

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIDText(t *testing.T) {
	require.EqualValues(t, 128, unsafe.Sizeof(ID{}))
	for _, addr := range []string{"10.1.2.3:4567", "[fe80::1%eth0]:9", "host.example:65535",
		strings.Repeat("h", maxAddr-3) + ":80"} {
		id, err := randomID(addr)
		require.NoError(t, err)
		require.NoError(t, id.Check())
		require.Equal(t, addr, id.Addr())
		back, err := ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
	}
}

func TestIDTextProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), keyLen, keyLen).Draw(t, "key")
		id, err := makeID(fmt.Sprintf("h:%d", rapid.Uint16().Draw(t, "port")), key)
		require.NoError(t, err)
		back, err := ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
		at := rapid.IntRange(0, len(id)-1).Draw(t, "at")
		id[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		require.Error(t, id.Check(), "byte %d damaged", at)
	})
}

// presume spares a test the stretching of a secret.
func presume(addr, secret string) {
	stretched.Lock()
	defer stretched.Unlock()
	key := sha256.Sum256([]byte(addr + " " + secret)) // differs for each job
	stretched.addr, stretched.secret, stretched.key = addr, secret, key[:keyLen]
}

func TestIDFor(t *testing.T) {
	a, err := IDFor("h:1", "s")
	require.NoError(t, err)
	same, _ := IDFor("h:1", "s")
	require.Equal(t, a, same)
	other, _ := IDFor("h:1", "t")
	require.NotEqual(t, a.key(), other.key())
	elsewhere, _ := IDFor("h:2", "t")
	require.NotEqual(t, other.key(), elsewhere.key())
	want, err := pbkdf2.Key(sha256.New, "s", []byte("ringo id h:1"), 300_000, 32)
	require.NoError(t, err)
	require.Equal(t, want, a.key())

	for _, tt := range []struct{ addr, secret, want string }{
		{"h:1", "", "set RINGO_COMM_SECRET"},
		{"h", "s", `"h" is not host:port`},
		{"h:0", "s", "not host:port"},
		{strings.Repeat("h", 100) + ":1", "s", "longer than 88 bytes"},
		{"h\x00:1", "s", "zero byte"},
	} {
		_, err := IDFor(tt.addr, tt.secret)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestIDCheck(t *testing.T) {
	good, _ := randomID("h:1")
	newer := good
	newer[3]++
	damaged := good
	damaged[50]++
	foreign := good
	foreign[0] = 0
	for _, tt := range []struct {
		id   ID
		want string
	}{
		{ID{}, "empty"},
		{newer, "made by version 4"},
		{damaged, "checksum"},
		{foreign, "not an ID of ringo"},
	} {
		require.ErrorContains(t, tt.id.Check(), tt.want)
	}
	_, err := ParseID("nccl:xyz")
	require.ErrorContains(t, err, `begin with "ringo:"`)
	_, err = ParseID("ringo:***")
	require.ErrorContains(t, err, "base64")
	_, err = ParseID("ringo:AAAA")
	require.ErrorContains(t, err, "too short")
}

func TestIDStaysOutOfLogs(t *testing.T) {
	id, err := randomID("h:1")
	require.NoError(t, err)
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("made", "id", id)
	require.Contains(t, b.String(), "id=h:1")
}

func TestIDStaysOutOfMessages(t *testing.T) {
	id, err := randomID("h:1")
	require.NoError(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%x", "%d"} {
		for _, v := range []any{id, &id, struct{ ID ID }{id}, []ID{id}, map[string]ID{"a": id}} {
			text := fmt.Sprintf(format, v)
			require.Less(t, len(text), 100, "%s of %T: %s", format, v, text)
			require.NotContains(t, text, idText)
		}
	}
	require.Equal(t, "ID(h:1)", fmt.Sprint(id))
	require.Equal(t, id.String(), fmt.Sprintf("%s", id))
	require.Equal(t, `"`+id.String()+`"`, fmt.Sprintf("%q", id))
}

func TestIDMarshals(t *testing.T) {
	type file struct{ ID ID }
	id, err := randomID("h:1")
	require.NoError(t, err)
	for _, id := range []ID{id, {}} {
		b, err := json.Marshal(file{id})
		require.NoError(t, err)
		back := file{ID{1}}
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, id, back.ID)
	}
	_, err = json.Marshal(file{ID{1}})
	require.ErrorContains(t, err, "not an ID")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"ID":"nccl:x"}`), new(file)), `begin with "ringo:"`)
}

func FuzzParseID(f *testing.F) {
	id, _ := randomID("10.0.0.1:4000")
	f.Add(id.String())
	f.Add("ringo:")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		require.NoError(t, id.Check())
		back, err := ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
	})
}

func TestDerive(t *testing.T) {
	id, err := randomID("127.0.0.1:4000")
	require.NoError(t, err)
	a, b := id.Derive("a"), id.Derive("b")
	require.NoError(t, a.Check())
	require.Equal(t, id.Addr(), a.Addr())
	require.Equal(t, a, id.Derive("a"))
	require.NotEqual(t, id, a)
	require.NotEqual(t, a, b)
	require.NotEqual(t, a.Derive("b"), b.Derive("a"))
}

// Ranks that have the key meet, and the key must be whole.
func TestIDOf(t *testing.T) {
	key := bytes.Repeat([]byte{7}, keyLen)
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0", Key: key})
	require.NoError(t, err)
	defer Stop(id)
	same, err := IDOf(id.Addr(), key)
	require.NoError(t, err)
	require.Equal(t, id, same)
	_, err = IDOf(id.Addr(), key[1:])
	require.ErrorContains(t, err, "31 bytes")
	_, err = IDOf("127.0.0.1:0", key)
	require.ErrorContains(t, err, "is not host:port")
	_, err = NewID(ListenOptions{Addr: "127.0.0.1:0", Key: []byte{}})
	require.ErrorContains(t, err, "0 bytes")
}
