package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A small value passes as it was; what is cut off, no JSON, or longer than a value may be is an error.
func TestSmallValues(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, [2]int{7, 8}))
	require.Equal(t, "\x00\x00\x00\x05[7,8]", b.String())
	whole := b.String()
	var got [2]int
	require.NoError(t, readJSON(iotest.OneByteReader(&b), &got))
	require.Equal(t, [2]int{7, 8}, got)
	require.Equal(t, io.EOF, readJSON(strings.NewReader(""), &got))
	for n := 1; n < len(whole); n++ {
		want := io.ErrUnexpectedEOF
		if n == 4 {
			want = io.EOF
		}
		require.Equal(t, want, readJSON(strings.NewReader(whole[:n]), &got), "%d bytes", n)
	}
	syntax := new(json.SyntaxError)
	require.ErrorAs(t, readJSON(strings.NewReader("\x00\x00\x00\x01{"), &got), &syntax)
	require.ErrorAs(t, readJSON(strings.NewReader("\xff\xff\xff\xff"+strings.Repeat(" ", 1<<17)), &got), &syntax,
		"it is not read without end")
	require.Error(t, writeJSON(&b, func() {}))
	cut := errors.New("cut")
	require.Equal(t, cut, writeJSON(failing{cut}, 1))
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestAddressesOfMeetings(t *testing.T) {
	for at, want := range map[string]string{"10.0.0.1:80": "10.0.0.1", "[fd77::1]:80": "fd77::1", "x": ""} {
		require.Equal(t, want, ipOf(at))
	}
	for host, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "10.0.0.1": false,
		"fd77::1": false, "": false} {
		require.Equal(t, want, isLoopback(host), host)
	}
}

// Hosts of one name get different ones, and ranks of one host the same.
func TestUniqueNames(t *testing.T) {
	require.Equal(t, []string{"a", "a", "a#2", "b", "a#3", "a#2"},
		uniqueNames([]profile{{Host: "a", ID: "1"}, {Host: "a", ID: "1"}, {Host: "a", ID: "2"}, {Host: "b", ID: "1"},
			{Host: "a", ID: "3"}, {Host: "a", ID: "2"}}))
}
