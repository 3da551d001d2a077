// Package page writes the page of "ringo play": one file that a browser opens without a network,
// for people who want to see schedules move. The file has package play as WebAssembly, the page's
// first question, and the user's own schedules. It is part of the command ringo, and nothing here
// is promised to other modules.
//
// The trap: the WebAssembly module is kept here, so that "go install" needs only Go. Run
// "go generate ./cmd/play/page" after a change of play, sched, sim or an algorithm.
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

// A Setup is the state in which a page opens.
type Setup struct {
	Question play.Question // Edits and Table are not used
	Own      []Own
	Trace    []byte // a file of "ringo bench -trace" to lay over the model; nil for none
	Follow   bool   // play the last call of the trace instead of Question
}

// An Own is an algorithm that package play does not have. The page gets it as tables.
type Own struct {
	Collective, Algo string
	Tables           map[int][]*play.Table // by number of ranks: a table for each root, or one if there is no root
}

// Write writes the page, which is about 1.25 MB.
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
		"{{trace}}", strings.ReplaceAll(string(s.Trace), "<", `\u003c`), // in JSON only strings have <
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

// json is the setup for the script. encoding/json writes < as \u003c, so no text in it ends the HTML element.
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
