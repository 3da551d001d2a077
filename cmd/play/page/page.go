// Package page writes the page of "ringo play": one file that a browser opens without a network,
// for people who want to see schedules move. In it are package play as WebAssembly, what the page
// is asked first, and schedules of the user's own. It is part of the command ringo, and nothing
// here is promised to other modules.
//
// The trap: the module is compiled by "go generate ./cmd/play/page" and kept here, so that
// "go install" needs no more than Go; who changes play, sched, sim or an algorithm runs it.
package page

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ringo-go/ringo/cmd/play"
)

//go:generate go run ./gen

//go:embed module.wasm.gz
var module []byte

//go:embed web
var web embed.FS

// scripts are the parts of the page's script, in order.
var scripts = []string{"module.js", "show.js", "circle.js", "chunks.js", "table.js", "trace.js", "lanes.js", "main.js"}

// A Setup is what a page begins with.
type Setup struct {
	Question play.Question // Edits and Table are not used
	Own      []Own
	Trace    []byte // a file of "ringo bench -trace" to lay over the model; nil for none
	Follow   bool   // the page plays the last call of the trace, rather than Question
}

// An Own is an algorithm that the page does not have: it gets the tables.
type Own struct {
	Collective, Algo string
	Tables           map[int][]*play.Table // by number of ranks; of rooted collectives by root
}

// Write writes the page, a megabyte and a quarter.
func Write(w io.Writer, s Setup) error {
	setup, err := s.json()
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	read := func(names ...string) (text string) {
		for _, name := range names {
			b, e := web.ReadFile("web/" + name)
			if e != nil {
				err = e
			}
			text += string(b)
		}
		return text
	}
	html := strings.NewReplacer(
		"{{style}}", read("page.css"),
		"{{script}}", read(scripts...),
		"{{setup}}", string(setup),
		"{{trace}}", strings.ReplaceAll(string(s.Trace), "<", `\u003c`), // only texts of JSON have it
		"{{module}}", base64.StdEncoding.EncodeToString(module),
	).Replace(read("page.html"))
	if err == nil {
		_, err = io.WriteString(w, html)
	}
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// json is the setup for the script. encoding/json writes < as \u003c, so it cannot end its element.
func (s Setup) json() ([]byte, error) {
	type own struct {
		Collective string           `json:"collective"`
		Algo       string           `json:"algo"`
		Tables     map[int][]string `json:"tables"`
	}
	setup := struct {
		Question map[string]any `json:"question"`
		Own      []own          `json:"own"`
		Follow   bool           `json:"follow"`
	}{
		Follow: s.Follow,
		Question: map[string]any{
			"collective": s.Question.Collective, "algo": s.Question.Algo, "ranks": s.Question.Ranks, "node": s.Question.Node,
			"root": s.Question.Root, "bytes": s.Question.Bytes, "net": s.Question.Net,
		},
	}
	for _, o := range s.Own {
		texts := map[int][]string{}
		for n, tables := range o.Tables {
			for _, t := range tables {
				texts[n] = append(texts[n], t.String())
			}
		}
		setup.Own = append(setup.Own, own{o.Collective, o.Algo, texts})
	}
	return json.Marshal(setup)
}
