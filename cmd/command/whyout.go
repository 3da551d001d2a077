package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/trace/history"
)

// Exit statuses of ringo why, the most telling first.
const (
	whyBlame   = cli.ExitStatus(3) // ranks are to blame
	whyStuck   = cli.ExitStatus(4) // all ranks are in the call and nothing moves, or the time-out is too short
	whyUnknown = cli.ExitStatus(5) // the files do not tell
)

// A whyAnswer is an answer as -json prints it.
type whyAnswer struct {
	Ranks    int        `json:"ranks"`
	Reason   string     `json:"reason"`
	Sentence string     `json:"sentence"`
	Remedy   string     `json:"remedy,omitempty"`
	Culprits []int      `json:"culprits"`
	Either   bool       `json:"either,omitempty"` // the culprits are two sides, of which one may be right
	Missing  []int      `json:"missing"`
	Classes  []whyClass `json:"classes"`
	Notes    []string   `json:"notes"`
	status   cli.ExitStatus
	text     string
}

// A whyClass is the ranks that are at one place.
type whyClass struct {
	Ranks []int  `json:"ranks"`
	Is    string `json:"are"`
	For   []int  `json:"wait_for"`
}

// list copies s. The copy of nil is empty, which is [] in JSON and not null.
func list[T any](s []T) []T { return append([]T{}, s...) }

func answerOf(a *hang.Answer) whyAnswer {
	w := whyAnswer{
		Ranks: a.Ranks, Reason: a.Reason.String(), Sentence: a.Sentence, Remedy: a.Remedy,
		Culprits: list(a.Culprits), Either: a.Either, Missing: list(a.Missing), Classes: []whyClass{}, Notes: list(a.Notes),
	}
	for _, c := range a.Classes {
		w.Classes = append(w.Classes, whyClass{list(c.Ranks), c.Is, list(c.For)})
	}
	switch {
	case len(a.Culprits) > 0:
		w.status = whyBlame
	case a.Reason == hang.Stuck, a.Reason == hang.Short:
		w.status = whyStuck
	case a.Reason != hang.Nothing:
		w.status = whyUnknown
	}
	return w
}

// all are the answers, one for each job.
func (f *whyFound) all() (all []whyAnswer, err error) {
	for _, a := range hang.Merge(f.answers) {
		w := answerOf(&a)
		var b strings.Builder
		if e := a.Print(&b); e != nil {
			err = e
		}
		w.text = b.String()
		all = append(all, w)
	}
	return all, err
}

// printAnswers writes the answers as text or as JSON, and a page to the file page unless that is "". The error is the
// exit status of the answers.
func printAnswers(w io.Writer, all []whyAnswer, asJSON bool, page string) error {
	if err := cli.Save("-html", page, w, func(w io.Writer) error { return whyPage(w, all) }); err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return err
		}
	}
	status := cli.ExitStatus(0)
	for i, a := range all {
		if status == 0 || a.status != 0 && a.status < status {
			status = a.status
		}
		if asJSON || page == "-" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := io.WriteString(w, a.text); err != nil {
			return err
		}
	}
	if status != 0 {
		return status
	}
	return nil
}

// whyHead begins the page of -html.
const whyHead = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>ringo why</title>
<style>body{font:15px sans-serif;max-width:1300px;margin:2em auto}rect{fill:#eef;stroke:#99b}.blamed rect{fill:#fdd;stroke:#c00}
text{font-size:13px}path{fill:none;stroke:#555}pre{background:#f6f6f6;padding:1em;overflow:auto}</style>
`

// whyPage writes a page that needs no other file. It escapes by itself, as the page of bench does, for the same reason.
func whyPage(w io.Writer, all []whyAnswer) error {
	var b bytes.Buffer
	b.WriteString(whyHead)
	for _, a := range all {
		fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(a.Sentence))
		if len(a.Classes) > 0 {
			a.draw(&b)
		}
		fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(a.text))
	}
	b.WriteString("</html>\n")
	_, err := b.WriteTo(w)
	return err
}

const whyRow = 44 // height of a class in the picture, in pixels

// draw draws a box for each class, and an arrow from a class that waits to the class it waits for.
func (a whyAnswer) draw(b *bytes.Buffer) {
	fmt.Fprintf(b, `<p>Who waits for whom: an arrow goes from ranks that wait to those for which they wait.</p>
<svg width="1250" height="%d"><defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">`+
		`<polygon points="0,0 8,4 0,8" fill="#555"/></marker></defs>
`, whyRow*len(a.Classes)+4)
	of := map[int]int{} // the class of a rank
	for i, c := range a.Classes {
		class := ""
		for _, r := range c.Ranks {
			of[r] = i
			if slices.Contains(a.Culprits, r) {
				class = ` class="blamed"`
			}
		}
		label := history.Ranks(c.Ranks[:min(8, len(c.Ranks))]) + more(len(c.Ranks)-8) + ": " + c.Is
		fmt.Fprintf(b, `<g%s><rect x="2" y="%d" width="900" height="36" rx="5"/><text x="12" y="%d">%s</text></g>`+"\n",
			class, whyRow*i+4, whyRow*i+26, html.EscapeString(label))
	}
	for i, c := range a.Classes {
		to := map[int]bool{}
		for _, r := range c.For {
			if k, ok := of[r]; ok && k != i {
				to[k] = true
			}
		}
		for k := range a.Classes {
			if to[k] {
				fmt.Fprintf(b, `<path d="M902 %d Q%d %d 904 %d" marker-end="url(#tip)"/>`+"\n",
					whyRow*i+22, 930+15*max(i-k, k-i), whyRow*(i+k+1)/2, whyRow*k+22)
			}
		}
	}
	b.WriteString("</svg>\n")
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
