package play_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/play"
	"github.com/ringo-go/ringo/cmd/play/page"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/trace"
)

var pictures = flag.String("pictures", "", "folder for pictures of the page, instead of tests")

// pageFile writes a page and returns its address.
func pageFile(t *testing.T, s page.Setup) string {
	var b bytes.Buffer
	require.NoError(t, page.Write(&b, s))
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	return "file://" + file
}

// TestPictures makes docs/play.png, and pictures for people who change the page:
//
//	go test ./cmd/play -run Pictures -pictures DIR
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("makes pictures for people: -pictures DIR")
	}
	b := open(t)
	url := pageFile(t, page.Setup{Question: play.Question{Collective: "allreduce", Algo: "ring", Ranks: 8, Bytes: 1 << 20,
		Net: "shm"}})
	for _, p := range []struct {
		name             string
		width            int
		scheme, hash, do string
		end              string
	}{
		{"play", 1000, "light", "ranks=8", "page.go(9)", ".columns"},
		{"dark", 1280, "dark", "ranks=8", "page.go(10)", "footer"},
		{"phone", 400, "light", "ranks=8", "page.go(5)", "footer"},
		{"phone-dark", 400, "dark", "ranks=16&algo=hier&node=4", "page.go(5)", "footer"},
		{"broken", 1280, "light", "ranks=8", "page.go(6); page.toggleBreaking(); page.edit('drop 2 3')", "footer"},
		{"hier", 1280, "light", "ranks=16&algo=hier&node=4&net=nvlink", "page.go(6)", "footer"},
		{"tree", 1280, "light", "ranks=32&algo=tree&net=ndr", "page.go(9)", "footer"},
		{"many", 1280, "light", "ranks=64&algo=halving&net=ndr", "page.go(40)", "footer"},
		{"alltoall", 1280, "light", "ranks=8&collective=alltoall&algo=direct", "page.go(4)", "footer"},
		{"binomial", 400, "light", "ranks=13&collective=broadcast&algo=binomial&root=4", "page.go(2)", "footer"},
	} {
		b.window(p.width, 900, p.scheme, "reduce")
		b.visit(url + "#" + p.hash)
		eval[any](b, p.do)
		b.picture(filepath.Join(*pictures, p.name+".png"), p.end)
		require.Len(t, b.faults, 1, p.name)
	}
}

// holds is the content of each chunk of each Out after a number of turns, as "chunk:ranks" with the
// ranks in hex, which the page shows too. It is worked out from the values of sched.Watch.
func holds(p *play.Play, turns int) []string {
	shape := p.Table.Shape()
	out := make([]string, shape.Ranks*shape.Out)
	for r, row := range p.Steps {
		for _, s := range row {
			if s.Turn >= 0 && s.Turn < turns && s.Dst.Buf == sched.Out {
				set, _ := strconv.ParseUint(play.Set(s.Value.From()), 16, 64)
				out[r*shape.Out+int(s.Dst.Chunk)] = fmt.Sprintf("%d:%x", s.Value.Chunk(), set)
			}
		}
	}
	return out
}

const (
	cells = `[...document.querySelectorAll("#chunks td")].map(td => td.dataset.holds)`
	turn  = `Number(document.querySelector("#turn").firstChild.textContent)`
)

func words(b *browser, selector string) string {
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).textContent", selector))
}

// An own is a program's own schedule: rank 1 sends its chunk to rank 0, and gets the sum.
type own struct{}

func (own) Shape() sched.Shape { return sched.Shape{Ranks: 2, In: 1, Out: 1} }
func (own) Len(sched.Rank) int { return 2 }
func (own) At(r sched.Rank, i int) sched.Step {
	in, out := sched.In.At(0), sched.Out.At(0)
	return [][]sched.Step{
		{{Recv: 1, Src: in, Dst: out, Send: sched.Nobody}, {Recv: sched.Nobody, Src: out, Send: 1}},
		{{Recv: sched.Nobody, Src: in, Send: 0}, {Recv: 0, Dst: out, Send: sched.Nobody}},
	}[r][i]
}

// ringTrace is an all-reduce of 3 ranks, of which rank 1 comes 5 µs late and rank 2 10 µs; each
// step takes 10 µs.
func ringTrace() *trace.Trace {
	const us = 1000
	t := &trace.Trace{}
	for r := range 3 {
		c := trace.Call{Comm: "c", Rank: r, Size: 3, Host: "h", Number: 7, Kind: "AllReduce", Algo: "ring", Bytes: 3 << 10,
			Peer: -1, Start: int64(5 * r * us), End: 60 * us}
		for i := range 5 {
			from, to := int32(r+2)%3, int32(r+1)%3
			start := int64(5*r+10*i) * us
			c.Steps = append(c.Steps, trace.Span{Start: start, End: start + 10*us, What: trace.Step, Step: int32(i), Recv: from,
				Send: to},
				trace.Span{Start: start, End: start + us, What: trace.Wait, Step: int32(i), Recv: from, Send: -1})
		}
		t.Calls = append(t.Calls, c)
	}
	return t
}

// TestBrowser opens the page in a real browser, from a file, and allows no request beyond that. The
// page plays a ring to its end with the states of sched.Watch, refutes broken steps in the words of
// sched.Check, can be used by keys alone, and fits a telephone.
func TestBrowser(t *testing.T) {
	tier.Heavy(t)
	q := play.Question{Collective: "allreduce", Algo: "ring", Ranks: 5, Bytes: 1 << 20, Net: "shm"}
	ring, err := q.Answer()
	require.NoError(t, err)
	url := pageFile(t, page.Setup{Question: q,
		Own: []page.Own{{Collective: "allreduce", Algo: "mine", Tables: map[int][]*play.Table{2: {play.TableOf(own{})}}}}})
	b := open(t)
	b.window(1280, 900, "light", "no-preference")
	b.visit(url)
	require.Equal(t, "✓ all-reduce by ring on 5 ranks: proved, every contribution arrives once", words(b, "#verdict"))

	t.Run("the module is this package", func(t *testing.T) {
		b.t = t
		require.JSONEq(t, string(play.Ask("")), eval[string](b, `JSON.stringify(module.ask(""))`))
		for _, c := range book.Collectives {
			for _, a := range c.Algorithms {
				for _, edits := range []string{"", "drop 1 0", "swap 2 0 1;drop 5 0"} {
					ask := fmt.Sprintf("collective=%s\nalgo=%s\nranks=6\nnode=3\nroot=2\nbytes=300000\nnet=ethernet25\nedits=%s",
						c.Name, a.Name, edits)
					require.JSONEq(t, string(play.Ask(ask)), eval[string](b, fmt.Sprintf("JSON.stringify(module.ask(%q))", ask)), ask)
				}
			}
		}
	})

	t.Run("too many ranks", func(t *testing.T) {
		b.t = t
		ranks := func(n string) {
			eval[any](b, `document.querySelector("#ranks").value = "`+n+`", document.querySelector("#ranks").dispatchEvent(new Event("change"))`)
		}
		ranks("1e15")
		require.Contains(t, words(b, "#verdict"), "out of range")
		ranks("5")
		require.Contains(t, words(b, "#verdict"), "proved")
	})

	t.Run("each turn", func(t *testing.T) {
		b.t = t
		for at := range ring.Turns + 1 {
			require.Equal(t, at, eval[int](b, turn))
			require.Equal(t, holds(ring, at), eval[[]string](b, cells), "after %d turns", at)
			b.press("ArrowRight", "ArrowRight")
		}
		require.Equal(t, "8", words(b, "#hops"))
		require.Equal(t, "8.00 MiB", words(b, "#sent"), "2(n-1)/n of the data a rank, n ranks")
		require.Contains(t, words(b, "#told"), "Turn 9: rank 0: from 4 → Out[1]")
	})

	t.Run("play", func(t *testing.T) {
		b.t = t
		b.press("Home", "Home")
		require.Equal(t, 0, eval[int](b, turn))
		eval[any](b, `document.querySelector("#speed").value = "8"`)
		b.press(" ", "Space")
		require.Equal(t, "pause", words(b, "#play"))
		b.until(fmt.Sprintf(`%s === %d && document.querySelector("#play").textContent === "play"`, turn, ring.Turns))
		require.Equal(t, holds(ring, ring.Turns), eval[[]string](b, cells))
		b.press("ArrowLeft", "ArrowLeft")
		require.Equal(t, holds(ring, ring.Turns-1), eval[[]string](b, cells))
	})

	t.Run("break", func(t *testing.T) {
		b.t = t
		b.press("ArrowDown", "ArrowDown") // rank 1
		b.press("b", "KeyB")
		for _, tc := range []struct {
			clicks []string
			edits  []play.Edit
		}{
			{[]string{"drop step 3"}, []play.Edit{{Rank: 1, Step: 3, With: -1}}},
			{[]string{"swap step 1", "swap step 2"}, []play.Edit{{Rank: 1, Step: 1, With: 2}}},
			{[]string{"drop step 8"}, []play.Edit{{Rank: 1, Step: 8, With: -1}}},
		} {
			for _, label := range tc.clicks {
				eval[any](b, fmt.Sprintf(`document.querySelector("[aria-label='%s']").click()`, label))
			}
			q.Edits = tc.edits
			broken, err := q.Answer()
			require.NoError(t, err)
			refutation := sched.Check(broken.Table, sched.AllReduce, 2, false)
			require.Error(t, refutation)
			require.Equal(t, refutation.Error(), words(b, "#refuted"))
			require.False(t, eval[bool](b, `document.querySelector("#refutation").hidden`))
			place := broken.Places()[0]
			require.Equal(t, int(place.Rank), eval[int](b, `Number(document.querySelector("#rank").value)`),
				"the page goes to the place")
			require.Contains(t, words(b, "tr.wrong"), place.Why)
			require.Contains(t, words(b, "#verdict"), "rank 1: "+place.Why, "at the top, in view")
			b.press("End", "End")
			require.Equal(t, holds(broken, broken.Turns), eval[[]string](b, cells))
			b.press("u", "KeyU")
			require.Contains(t, words(b, "#verdict"), "all-reduce by ring on 5 ranks: proved")
			eval[any](b, `{ const r = document.querySelector("#rank"); r.value = 1; r.dispatchEvent(new Event("change")); }`)
		}
	})

	t.Run("address", func(t *testing.T) { // changed while the page is open
		b.t = t
		eval[any](b, `location.hash = "#ranks=64&algo=tree"`)
		b.until(`document.querySelector("#verdict").textContent.includes("by tree on 64 ranks: proved")`)
		b.press("End", "End")
		require.Equal(t, 64, eval[int](b, `document.querySelectorAll(".many .seat.whole").length`))
		require.Empty(t, eval[string](b, `[...document.querySelectorAll(".flag")].map(f => f.textContent).join("")`),
			"marks of so many seats would cover each other")
		eval[any](b, `location.hash = "#ranks=5"`)
		b.until(`document.querySelector("#verdict").textContent.includes("by ring on 5 ranks: proved")`)
	})

	t.Run("own", func(t *testing.T) {
		b.t = t
		eval[any](b, `for (const [id, value] of [["ranks", 2], ["algo", "mine"]]) {
			const e = document.querySelector("#" + id);
			e.value = value;
			e.dispatchEvent(new Event("change"));
		}`)
		require.Equal(t, "✓ all-reduce by mine on 2 ranks: proved, every contribution arrives once", words(b, "#verdict"))
		b.press("End", "End")
		require.Equal(t, []string{"0:3", "0:3"}, eval[[]string](b, cells))
	})
	require.Equal(t, []string{"request of " + url}, b.faults)

	t.Run("400 pixels", func(t *testing.T) {
		b.t = t
		b.window(400, 800, "dark", "reduce")
		b.visit(url + "#ranks=4&edits=swap+2+1+4")
		require.Equal(t, "✗ all-reduce by ring on 4 ranks, changed in one place: refuted, step 1 of rank 2: receives 1[0] "+
			"for Out[1]: chunks 0 and 1 of a block may differ in length", words(b, "#verdict"),
			"an address keeps what was broken")
		b.press("r", "KeyR")
		require.Equal(t, "✓ all-reduce by ring on 4 ranks: proved, every contribution arrives once", words(b, "#verdict"))
		b.visit(url + "#ranks=100")
		require.Equal(t, "✓ all-reduce by ring on 5 ranks: proved, every contribution arrives once", words(b, "#verdict"),
			"an address that is wrong")
		for hash, wide := range map[string]bool{"ranks=8": false, "ranks=64&algo=tree": false,
			"ranks=16&algo=hier&node=4": true, "collective=alltoall&algo=direct&ranks=12": true} {
			b.visit(url + "#" + hash)
			b.press("b", "KeyB")
			b.press("ArrowRight", "ArrowRight")
			require.Equal(t, 1, eval[int](b, turn))
			eval[any](b, `document.querySelector("[aria-label='drop step 0']").click()`)
			require.NotEmpty(t, words(b, "#refuted"))
			require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), 400, hash)
			b.until(fmt.Sprintf(`document.querySelector("#sideways").hidden === %v`, !wide))
			require.Len(t, b.faults, 1, "%s: %v", hash, b.faults)
		}
	})

	t.Run("trace", func(t *testing.T) {
		b.t = t
		var file bytes.Buffer
		traced := ringTrace()
		require.NoError(t, traced.Write(&file))
		b.visit(pageFile(t, page.Setup{Question: q, Trace: file.Bytes(), Follow: true}))
		require.Equal(t, "✓ all-reduce by ring on 3 ranks: proved, every contribution arrives once", words(b, "#verdict"))
		require.Equal(t, "AllReduce #7 ring, 3.00 KiB, 3 ranks: 60.0 µs", words(b, "#measured"))
		require.Contains(t, words(b, "#laid"), "Measured 60.0 µs, under the model")
		require.Contains(t, words(b, "#laid"), "Rank 2 came last, 10.0 µs after the first")
		for at, want := range []string{"0.00 µs", "20.0 µs", "30.0 µs", "40.0 µs", "50.0 µs", "60.0 µs"} {
			require.Equal(t, want+" of 60.0 µs", words(b, "#real"), "after %d turns", at)
			b.press("ArrowRight", "ArrowRight")
		}
		b.visit(pageFile(t, page.Setup{Question: play.Question{Collective: "allreduce", Algo: "ring", Ranks: 3,
			Bytes: 3 << 10, Net: "ndr"}, Trace: file.Bytes()}))
		require.Contains(t, words(b, "#laid"), "Measured 60.0 µs, under the model", "it is of what is played")
		eval[any](b, `const ranks = document.querySelector("#ranks"); ranks.value = 4; ranks.dispatchEvent(new Event("change"));`)
		require.True(t, eval[bool](b, `document.querySelector("#real-box").hidden`), "of other ranks")
		require.Len(t, b.faults, 1, b.faults)
	})

	t.Run("names", func(t *testing.T) { // of all controls, for screen readers
		b.t = t
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("button, input, select, [tabindex], [role=img]")]
			.filter(e => !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim() || e.textContent.trim())).map(e => e.outerHTML)`))
	})
}
