package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/cmd/play"
	"github.com/ringo-go/ringo/cmd/play/page"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/internal/web"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
	"github.com/ringo-go/ringo/trace"
)

// playHelp is what "ringo play -h" prints.
const playHelp = `usage: ringo play [COLLECTIVE] [flags]

A page for the browser that plays schedules turn by turn: the ranks and their
messages, what each chunk holds, hops, bytes, and the model's clock. Its break
button drops a step or swaps two, and shows how the checker refutes that. The
flags are what it begins with; everything can be changed in the page.

Examples
  ringo play
  ringo play allreduce -np 16 -algo halving -o halving.html
  ringo play allreduce -np 16 -algo hier -node 4 -net nvlink
  ringo bench allreduce -np 4 -e 1M -trace t.json && ringo play -trace t.json
  go run ./examples/schedule play allreduce -algo star

{o addr np algo node s r net trace}

Collectives: allreduce (default), reduce, broadcast, allgather, reducescatter,
alltoall, gather, scatter. A program that defines algorithms of its own and is
the command for them (examples/schedule) has them in its page.
`

func runPlay(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("play")
	file, addr, algo, links := fs.String("o", "", "`FILE` write the page, one file that needs no network, and "+
		"no more"), "127.0.0.1:0", "", "shm"
	ranks, root, node, size := 8, 0, 0, int64(1<<20)
	cli.Var(fs, func(text string) (err error) { addr, err = cli.Address(text); return err },
		func() string { return addr }, "addr `A` serve it at this address (default 127.0.0.1:0, any free "+
			"port)")
	cli.Int(fs, &ranks, 2, play.Most, fmt.Sprintf("2 to %d ranks", play.Most), "np `N` ranks, 2 to 64 "+
		"(default 8)")
	cli.Int(fs, &root, 0, play.Most-1, "a rank", "r `ROOT` root of broadcast, reduce, gather, scatter (default "+
		"0)")
	cli.Int(fs, &node, 0, play.Most, fmt.Sprintf("1 to %d ranks of a node, or 0 for the net's own", play.Most),
		"node `N` ranks of a node (default: the net's own)")
	cli.Var(fs, func(text string) error {
		if algo = text; text == "" { // setUp knows algorithms that communicators do not
			return cli.Unknown("algorithm", text, ringo.Algorithms())
		}
		return nil
	}, func() string { return algo }, "algo `A` algorithm (default ring, or the collective's first)")
	sizeFlag(fs, &size, "s `SIZE` bytes of the larger buffer of a rank (default 1M)")
	cli.Word(fs, &links, "net", slices.Sorted(maps.Keys(sim.Presets)), "net `NET` links of the model's "+
		"clock, as for ringo sim (default shm)")
	traced := fs.String("trace", "", "`FILE` lay a trace of ringo bench -trace over the model's clock; "+
		"without a COLLECTIVE the page begins with its last call")
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	text, err := cli.Outputs(stdout, cli.Output{Flag: "-o", File: *file, Ends: []string{".html", ".htm"}})
	if err != nil {
		return err
	}
	follow := *traced != "" && len(names) == 0
	if len(names) == 0 {
		names = []string{"allreduce"}
	}
	if len(names) > 1 {
		return cli.Usagef("one collective at a time")
	}
	setup := page.Setup{Question: play.Question{
		Collective: names[0], Algo: algo, Ranks: ranks, Node: node, Root: sched.Rank(root), Bytes: size, Net: links,
	}}
	if err := setUp(&setup); err != nil {
		return err
	}
	if *traced != "" {
		if setup.Trace, err = lastCalls(*traced); err != nil {
			return cli.Usagef("-trace: %v", err)
		}
		setup.Follow = follow
	}
	if *file == "" {
		return servePage(ctx, addr, setup, stdout)
	}
	write := func(w io.Writer) error { return page.Write(w, setup) }
	if err := cli.Save("-o", *file, stdout, write); err != nil {
		return err
	}
	fmt.Fprintf(text, "wrote %s: open it in a browser\n", *file)
	return nil
}

// servePage serves a page until ctx ends.
func servePage(ctx context.Context, addr string, setup page.Setup, stdout io.Writer) error {
	var b bytes.Buffer
	if err := page.Write(&b, setup); err != nil {
		return err
	}
	l, err := cli.Listen("-addr", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "open http://%v/ in a browser; Ctrl-C ends\n", l.Addr())
	return web.Serve(ctx, l, func(path string) (a web.Answer) {
		if path == "/" {
			a.Body = b.Bytes()
		}
		return a
	})
}

// setUp checks the question that a page begins with, and adds the algorithms that this program has defined.
func setUp(s *page.Setup) error {
	q := &s.Question
	c, err := book.Find(q.Collective)
	if err != nil {
		var known []string
		for _, c := range book.Collectives {
			known = append(known, c.Name)
		}
		return cli.Unknown("collective", q.Collective, known)
	}
	for _, c := range book.Collectives {
		own, err := ownOf(c, q.Ranks)
		if err != nil {
			return err
		}
		s.Own = append(s.Own, own...)
	}
	var algos []string
	for _, a := range c.Algorithms {
		algos = append(algos, a.Name)
	}
	for _, o := range s.Own {
		if o.Collective == c.Name {
			algos = append(algos, o.Algo)
			if o.Algo == q.Algo && q.Root >= 0 && int(q.Root) < q.Ranks {
				if len(o.Tables[q.Ranks]) == 0 {
					return cli.Usagef("%s is not for %d ranks", q.Algo, q.Ranks)
				}
				q.Table = o.Tables[q.Ranks][min(int(q.Root), len(o.Tables[q.Ranks])-1)]
			}
		}
	}
	if q.Algo == "" {
		q.Algo = algos[0]
	}
	if !slices.Contains(algos, q.Algo) {
		return cli.Usagef("-algo: %v", cli.Unknown("algorithm of "+c.Name, q.Algo, algos))
	}
	if _, err := q.Answer(); err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

// ownRanks bounds the numbers of ranks for which a page has tables of a program's own algorithms. The
// number of ranks that the page begins with has tables in any case.
const ownRanks = 16

// ownOf is the algorithms that this program has defined for a collective, as tables: communicators
// offer these algorithms, and pages do not know them.
func ownOf(c book.Collective, ranks int) (all []page.Own, err error) {
	col, err := bench.Find(c.Name)
	if err != nil {
		return nil, err
	}
	explain := func(n, root int, algo string) (ringo.Choice, error) {
		return ringo.Explain(col.Kind, n, 0, 1<<20, root, ringo.Config{Algo: algo})
	}
	for n := 2; n <= max(ownRanks, ranks); n++ {
		if n > ownRanks && n != ranks {
			continue
		}
		ch, err := explain(n, 0, "")
		if err != nil {
			return nil, err
		}
		for _, name := range ch.Others {
			if _, err := c.Find(name); err == nil {
				continue
			}
			i := slices.IndexFunc(all, func(o page.Own) bool { return o.Algo == name })
			if i < 0 {
				i = len(all)
				all = append(all, page.Own{Collective: c.Name, Algo: name, Tables: map[int][]*play.Table{}})
			}
			for root := range n {
				if root > 0 && !c.Rooted {
					break
				}
				ch, err := explain(n, root, name)
				if err != nil {
					return nil, err
				}
				all[i].Tables[n] = append(all[i].Tables[n], play.TableOf(ch.Schedule))
			}
		}
	}
	return all, nil
}

// lastCalls is the part of a trace that a page shows: for each collective, algorithm and size the last
// call with the steps of all ranks.
func lastCalls(file string) ([]byte, error) {
	text, err := given.Read(file)
	if err != nil {
		return nil, err
	}
	all, err := trace.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	type call struct { // the same for all ranks of a call
		comm, kind    string
		number        uint32
		track, size   int
		gpu, complete bool
	}
	type row struct { // calls of which the page shows the last
		kind, algo  string
		bytes, size int
	}
	whole, last := map[call][]*trace.Call{}, map[row][]*trace.Call{}
	for i := range all.Calls {
		c := &all.Calls[i]
		key := call{c.Comm, c.Kind, c.Number, c.Track, c.Size, c.GPU, !c.Model && c.Err == nil && c.Lost == 0}
		whole[key] = append(whole[key], c)
	}
	for key, ranks := range whole {
		c := ranks[0]
		r := row{c.Kind, c.Algo, c.Bytes, c.Size}
		if key.complete && len(ranks) == c.Size && (last[r] == nil || last[r][0].Start < c.Start) {
			last[r] = ranks
		}
	}
	var few trace.Trace
	for _, ranks := range last {
		for _, c := range ranks {
			few.Calls = append(few.Calls, *c)
		}
	}
	if len(few.Calls) == 0 {
		return nil, fmt.Errorf("%s: no call of which all ranks' steps are there", file)
	}
	slices.SortFunc(few.Calls, func(a, b trace.Call) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Comm, b.Comm), cmp.Compare(a.Rank, b.Rank))
	})
	var b bytes.Buffer
	err = few.Write(&b)
	return b.Bytes(), err
}
