package internal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/plain"
)

func TestJSON(t *testing.T) {
	require.JSONEq(t, `{"Rank": 3, "Hosts": ["a"]}`, string(plain.JSON(struct {
		Rank  int
		Hosts []string
	}{3, []string{"a"}})))
	require.Panics(t, func() { plain.JSON(make(chan int)) })
}
