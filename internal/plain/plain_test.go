package plain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSON(t *testing.T) {
	require.JSONEq(t, `{"Rank": 3, "Hosts": ["a"]}`, string(JSON(struct {
		Rank  int
		Hosts []string
	}{3, []string{"a"}})))
	require.Panics(t, func() { JSON(make(chan int)) })
}
