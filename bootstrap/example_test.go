package bootstrap_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/bootstrap"
)

// One process makes the ID and hands its text to the others, which may be
// anywhere. Here they are goroutines.
func Example() {
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := id.String()

	var ranks sync.WaitGroup
	for rank := range 3 {
		ranks.Go(func() {
			id, _ := bootstrap.ParseID(text)
			ctx := context.Background()
			g, err := bootstrap.Join(ctx, id, rank, 3, bootstrap.JoinOptions{})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer g.Close()
			all, err := g.AllGather(ctx, fmt.Appendf(nil, "I am %d", rank))
			if rank == 0 {
				fmt.Printf("%s %v\n", all, err)
			}
		})
	}
	ranks.Wait()
	// Output: [I am 0 I am 1 I am 2] <nil>
}
