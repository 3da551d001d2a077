package procs

import (
	"context"
	"fmt"
	"testing"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gpucommtest"
)

func TestMain(m *testing.M) {
	gpucommtest.Main(m, map[string]commtest.Work{"recover": recoverMain, "part": partMain},
		map[string]commtest.Work{"gpuloop": gpuLoop})
}

// partMain is a rank of TestNetnsSplit.
func partMain(c *ringo.Comm) int {
	part, err := c.Split(context.Background(), 0, -c.Rank())
	if err != nil {
		fmt.Println("error:", err)
		return 3
	}
	defer part.Close()
	x := []int32{int32(part.Rank())}
	if err := ringo.AllReduce(part, x, ringo.Sum); err != nil {
		fmt.Println("error:", err)
		return 4
	}
	fmt.Println("all of the part:", x[0])
	return 0
}
