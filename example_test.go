package ringo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

// ranks runs f on n goroutine ranks and waits for them.
func ranks(n int, f func(c *ringo.Comm) error) {
	comms, err := ringo.OpenLocal(n, ringo.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer c.Close()
			if err := f(c); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
}

// A program of several processes: start it with "ringo run -np 4 -- PROGRAM", torchrun, mpirun
// or srun.
func Example() {
	// ranks found through ringo run, torchrun, mpirun, srun …
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{})
	if errors.Is(err, ringo.ErrInvalid) {
		fmt.Println("no launcher")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	grad := make([]float32, 1<<20)
	if err := ringo.AllReduce(c, grad, ringo.Avg); err != nil { // names rank, peer and remedy; never hangs
		log.Fatal(err)
	}
	// Output: no launcher
}

func ExampleAllReduce() {
	ranks(3, func(c *ringo.Comm) error {
		x := []float32{1, float32(c.Rank())}
		err := ringo.AllReduce(c, x, ringo.Sum)
		if c.Rank() == 2 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [3 3]
}

func ExampleReduce() {
	ranks(3, func(c *ringo.Comm) error {
		var out []int64 // the root's alone
		if c.Rank() == 1 {
			out = make([]int64, 1)
		}
		err := ringo.Reduce(c, out, []int64{int64(c.Rank() + 1)}, ringo.Prod, 1)
		if c.Rank() == 1 {
			fmt.Println(out)
		}
		return err
	})
	// Output: [6]
}

func ExampleBroadcast() {
	ranks(3, func(c *ringo.Comm) error {
		x := []int32{int32(c.Rank()), 7}
		err := ringo.Broadcast(c, x, 1)
		if c.Rank() == 2 {
			fmt.Println(x)
		}
		return err
	})
	// Output: [1 7]
}

func ExampleAllGather() {
	ranks(3, func(c *ringo.Comm) error {
		all := make([]uint8, 3)
		err := ringo.AllGather(c, all, []uint8{uint8(10 * c.Rank())})
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [0 10 20]
}

func ExampleReduceScatter() {
	ranks(2, func(c *ringo.Comm) error {
		share := make([]float64, 2)
		err := ringo.ReduceScatter(c, share, []float64{1, 2, 3, 4}, ringo.Sum)
		if c.Rank() == 1 {
			fmt.Println(share)
		}
		return err
	})
	// Output: [6 8]
}

func ExampleAlltoAll() {
	ranks(2, func(c *ringo.Comm) error {
		out := make([]int32, 4)
		r := int32(10 * c.Rank())
		err := ringo.AlltoAll(c, out, []int32{r, r + 1, r + 2, r + 3}) // two elements for each rank
		if c.Rank() == 1 {
			fmt.Println(out)
		}
		return err
	})
	// Output: [2 3 12 13]
}

func ExampleGather() {
	ranks(3, func(c *ringo.Comm) error {
		var all []int32
		if c.Rank() == 0 {
			all = make([]int32, 3)
		}
		err := ringo.Gather(c, all, []int32{int32(c.Rank() * c.Rank())}, 0)
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [0 1 4]
}

func ExampleScatter() {
	ranks(3, func(c *ringo.Comm) error {
		var all []int32
		if c.Rank() == 0 {
			all = []int32{5, 6, 7}
		}
		mine := make([]int32, 1)
		err := ringo.Scatter(c, mine, all, 0)
		if c.Rank() == 2 {
			fmt.Println(mine)
		}
		return err
	})
	// Output: [7]
}

func ExampleAllGatherv() {
	ranks(3, func(c *ringo.Comm) error {
		counts := []int{1, 0, 2} // elements of each rank
		mine := [][]int32{{1}, nil, {2, 3}}[c.Rank()]
		all := make([]int32, 3)
		err := ringo.AllGatherv(c, all, mine, counts)
		if c.Rank() == 1 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [1 2 3]
}

func ExampleAlltoAllv() {
	ranks(2, func(c *ringo.Comm) error {
		// Rank 0 keeps 1 and sends 2 elements; rank 1 sends 1 and keeps 0.
		sends := [][]int{{1, 2}, {1, 0}}[c.Rank()]
		gets := [][]int{{1, 1}, {2, 0}}[c.Rank()]
		in := [][]int32{{1, 2, 3}, {4}}[c.Rank()]
		out := make([]int32, 2)
		err := ringo.AlltoAllv(c, out, gets, in, sends)
		if c.Rank() == 1 {
			fmt.Println(out)
		}
		return err
	})
	// Output: [2 3]
}

func ExampleSend() {
	ranks(2, func(c *ringo.Comm) error {
		x := []int32{42}
		if c.Rank() == 0 {
			return ringo.Send(c, x, 1)
		}
		x[0] = 0
		err := ringo.Recv(c, x, 0)
		fmt.Println(x)
		return err
	})
	// Output: [42]
}

// Neighbours exchange without an order, since the calls of a group progress side by side.
func ExampleGroup() {
	ranks(4, func(c *ringo.Comm) error {
		n := c.Size()
		out, in := []int32{int32(c.Rank())}, make([]int32, 1)
		var g ringo.Group
		g.Add(c, ringo.SendOf(out, (c.Rank()+1)%n))
		g.Add(c, ringo.RecvOf(in, (c.Rank()+n-1)%n))
		err := g.Run()
		if c.Rank() == 0 {
			fmt.Println(in)
		}
		return err
	})
	// Output: [3]
}

func ExampleComm_Split() {
	ranks(4, func(c *ringo.Comm) error {
		part, err := c.Split(context.Background(), c.Rank()%2, 0) // the even ranks, and the odd ones
		if err != nil {
			return err
		}
		defer part.Close()
		x := []int32{int32(c.Rank())}
		err = ringo.AllReduce(part, x, ringo.Sum)
		if c.Rank() == 3 {
			fmt.Printf("rank %d of %d: %d\n", part.Rank(), part.Size(), x)
		}
		return err
	})
	// Output: rank 1 of 2: [4]
}

// The rank computes while its gradients are reduced.
// Every function on slices ends when a context does, by way of With.
func ExampleComm_With() {
	ranks(2, func(c *ringo.Comm) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		counts := []int{1, 2}
		mine, all := make([]int32, counts[c.Rank()]), make([]int32, 3)
		for i := range mine {
			mine[i] = int32(c.Rank())
		}
		if err := ringo.Gatherv(c.With(ctx), all, mine, counts, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 1 1]
}

func ExampleComm_Start() {
	ranks(2, func(c *ringo.Comm) error {
		x, y := []float32{1, 2}, []float32{3}
		first := c.Start(ringo.AllReduceOf(x, ringo.Avg))
		second := c.Start(ringo.AllReduceOf(y, ringo.Max))
		// … compute …
		err := errors.Join(first.Wait(), second.Wait())
		if c.Rank() == 0 {
			fmt.Println(x, y)
		}
		return err
	})
	// Output: [1 2] [3]
}

// Errors are values: what kind, and who.
func ExampleError() {
	comms, err := ringo.OpenLocal(2, ringo.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = ringo.Broadcast(comms[0], []int32{1}, 7) // nothing is sent
	fmt.Println(errors.Is(err, ringo.ErrInvalid))

	var wg sync.WaitGroup
	wg.Go(func() { ringo.Barrier(comms[1]) })
	err = ringo.AllReduce(comms[0], []int32{1}, ringo.Sum) // but rank 1 calls Barrier
	var e *ringo.Error
	if errors.As(err, &e) {
		fmt.Println(e.Op, e.Seq, errors.Is(e, ringo.ErrMismatch))
	}
	wg.Wait()
	for _, c := range comms {
		c.Close()
	}
	// Output:
	// true
	// AllReduce 1 true
}

func ExampleExplain() {
	ch, err := ringo.Explain(ringo.KindAllReduce, 4, 0, 8, 0, ringo.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", ch.Algo, ch.Reason)
	// Output: doubling: small data: the fewest hops
}

func ExampleNewID() {
	id, err := ringo.NewID("127.0.0.1:0") // served by this process; the text of id goes to all ranks
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for rank := range 2 {
		wg.Go(func() {
			c, err := ringo.Open(context.Background(), ringo.Config{ID: &id, Rank: rank, Size: 2})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			defer c.Close()
			if err := ringo.Barrier(c); err == nil && rank == 0 {
				fmt.Println("all are here")
			}
		})
	}
	wg.Wait()
	// Output: all are here
}

// counts is an Observer that says what was called.
type counts struct {
	mu    sync.Mutex
	bytes map[string]int
}

func (o *counts) Begin(*trace.Call) {}

func (o *counts) End(c *trace.Call) { // c.Waits says how long it waited for whom
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes[c.Kind] += c.Bytes
}

func ExampleConfig_observer() {
	seen := &counts{bytes: map[string]int{}}
	comms, err := ringo.OpenLocal(3, ringo.Config{Observer: seen})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			defer c.Close()
			if err := ringo.AllReduce(c, make([]float32, 1000), ringo.Sum); err != nil {
				log.Fatal(err)
			}
			if err := ringo.Broadcast(c, make([]int64, 10), 0); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(seen.bytes)
	// Output: map[AllReduce:12000 Broadcast:240]
}

// Ranks meet and talk over listeners and connections of the program's own, such as those of crypto/tls or a service
// mesh.
func ExampleConfig_sockets() {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0") // or tls.NewListener(l, config)
		if err != nil {
			log.Fatal(err)
		}
		return l
	}
	id, err := bootstrap.NewID(bootstrap.ListenOptions{Listener: listen()}) // in one process
	if err != nil {
		log.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address) // or that of a tls.Dialer
	}
	var wg sync.WaitGroup
	for r := range 2 {
		wg.Go(func() {
			c, err := ringo.Open(context.Background(), ringo.Config{
				ID: &id, Rank: r, Size: 2, Transport: "socket", // ranks of one process would use its memory
				Sockets: &ringo.Sockets{Listener: listen(), Dial: dial},
			})
			if err != nil {
				log.Fatal(err)
			}
			defer c.Close()
			x := []int64{int64(r)}
			if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
				log.Fatal(err)
			}
			if r == 0 {
				fmt.Println(x[0], "over", c.Transport(1))
			}
		})
	}
	wg.Wait()
	// Output: 1 over socket
}

func ExampleDefine() {
	err := ringo.Define(ringo.Definition{
		Name: "mine", Kind: ringo.KindBroadcast,
		Schedule: func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := ringo.Open(context.Background(), ringo.Config{Size: 1, Algo: "mine"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(ringo.Broadcast(c, []int32{1, 2, 3}, 0))
	// Output: <nil>
}
