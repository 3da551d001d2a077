package commtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// A Mistake is what rank 1 of two does otherwise in the second of three calls. Programs in Go, C and Python make each
// in one process and in two, on host memory and on GPUs: Make, and mistake.c and mistake.py of cmd/libnccl/testdata.
// None of them heeds the result of a call. They print what each rank was told, the last result that of its end.
type Mistake struct {
	Name string
	Says [2]string // patterns of what each rank is told
}

// Mistakes is all that a program can do wrong whose ranks come and go as they should.
var Mistakes = []Mistake{
	{"count", [2]string{`count 100\b.*count 50\b`, `count 50\b.*count 100\b|count 100\b.*count 50\b`}},
	{"type", [2]string{"float32.*int32", "int32.*float32|float32.*int32"}},
	{"operator", [2]string{"sum.*max", "max.*sum|sum.*max"}},
	{"root", [2]string{`root 0\b.*root 1\b`, `root [01]\b.*root [01]\b`}},
	{"call", [2]string{`count 100\b.*count 7\b`, `count 7\b.*count 100\b|count 100\b.*count 7\b`}},
	{"group", [2]string{"rank 1 has closed the communicator", // of C, which has groups of a thread
		"ncclGroupStart was never ended: 2 calls were not carried out"}},
}

// Told looks for what a program that has made the mistake was told in what it has printed.
func (m Mistake) Told(t testing.TB, output string, ranks ...int) {
	t.Helper()
	for _, rank := range ranks {
		assert.Regexp(t, fmt.Sprintf("(?m)^rank %d is told: .*(%s)", rank, m.Says[rank]), output)
	}
}

// Make makes the calls of a rank and closes its communicator. It returns what a program prints.
func (m Mistake) Make(c *ringo.Comm) (told string) {
	data, free := mem.Of(make([]float32, 100)), func() error { return nil }
	tell := func(err error) {
		if err != nil {
			told += fmt.Sprintf("rank %d is told: %v\n", c.Rank(), err)
		}
	}
	if d := c.Device(); d != nil {
		var err error
		data, err = d.Alloc(400)
		tell(err)
		tell(d.Write(data, make([]byte, 400)))
		free = func() error { return d.Free(data) }
	}
	for i, count := range []int{100, 100, 7} {
		x := ringo.Call{Kind: ringo.KindAllReduce, Type: ringo.Float32, Op: ringo.Sum, Count: count}
		if m.Name == "root" && i == 1 {
			x.Kind, x.Root = ringo.KindBroadcast, c.Rank()
		}
		if wrong := i == 1 && c.Rank() == 1; wrong {
			switch m.Name {
			case "count":
				x.Count = 50
			case "type":
				x.Type = ringo.Int32
			case "operator":
				x.Op = ringo.Max
			case "call":
				continue
			}
		}
		if m.Name == "group" && i > 0 && c.Rank() == 1 {
			break
		}
		x.In, x.Out = data.Slice(0, 4*x.Count), data.Slice(0, 4*x.Count)
		c.Start(&x) // nobody waits
	}
	tell(c.Close())
	tell(free())
	return told
}

// MistakeWork is a Work that makes the mistake which the environment names.
func MistakeWork(c *ringo.Comm) int {
	fmt.Print(Mistake{Name: os.Getenv("RINGO_TEST_MISTAKE")}.Make(c))
	return 0
}

// TestMistakes has both ranks told of each mistake, in one process with the communicators that open makes, and in two
// that do the Work "mistake".
func TestMistakes(t *testing.T, what string, open func(t *testing.T) []*ringo.Comm) {
	for _, m := range tier.Some(2, Mistakes) {
		ranks := []int{0, 1}
		if m.Name == "group" { // a Group that nobody runs is none
			ranks = ranks[:1]
		}
		t.Run(m.Name+"/one process", func(t *testing.T) {
			var told [2]string
			Each(open(t), func(c *ringo.Comm) error { told[c.Rank()] = m.Make(c); return nil })
			m.Told(t, told[0]+told[1], ranks...)
		})
		t.Run(m.Name+"/two", func(t *testing.T) {
			for r, cmd := range Processes(t, 2, what, "RINGO_TEST_MISTAKE="+m.Name) {
				assert.NoError(t, cmd.Wait())
				if r < len(ranks) {
					m.Told(t, Output(cmd), r)
				}
			}
		})
	}
}
