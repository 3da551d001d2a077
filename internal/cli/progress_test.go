package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	p := &Progress{w: &out, now: func() time.Time { return now }}
	for i := range 45 { // tenths of a second
		p.Show("ring of 1G", float64(i)/100)
		now = now.Add(100 * time.Millisecond)
	}
	p.Clear()
	require.Equal(t, []string{"ring of 1G: 20 % after 2s", "ring of 1G: 30 % after 3s", "ring of 1G: 40 % after 4s", ""},
		strings.Split(strings.TrimPrefix(out.String(), "\r\033[K"), "\r\033[K"))
	out.Reset()
	p.Show("tree of 1G", 0.5)
	p.Clear()
	require.Empty(t, out.String(), "quick work says nothing")

	require.Nil(t, NewProgress(&out))
	(*Progress)(nil).Show("", 0)
	(*Progress)(nil).Clear()
}
