package bench

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
)

// pageHead begins an HTML report: no script, no other files.
const pageHead = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ringo bench</title>
<meta name="viewport" content="width=device-width">
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
svg { width: 100%; height: auto } pre { overflow-x: auto; font-size: 12.5px } dt { float: left; width: 7em; color: #666 }
</style></head><body>
<h1>ringo bench</h1>
`

// writePage writes reports as a page with picture and tables. It escapes by itself: package
// html/template would keep the linker from leaving out methods that nobody calls, a third of the program.
func writePage(w io.Writer, title string, reports []*Report) error {
	var b bytes.Buffer
	b.WriteString(pageHead)
	if err := drawAll(&b, title, reports); err != nil {
		return err
	}
	entry := func(name, format string, a ...any) {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>\n", name, html.EscapeString(fmt.Sprintf(format, a...)))
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "<h2>%s, %s UTC</h2>\n<dl>", html.EscapeString(r.Host), r.Date.Format("2006-01-02 15:04"))
		entry("machine", "%s, %d cores, %s/%s", r.CPU, r.Cores, r.OS, r.Arch)
		entry("program", "ringo %s, %s, %d ranks, %s", r.Version, r.Go, r.Ranks, r.Transport)
		entry("command", "ringo bench %s", strings.Join(r.Flags, " "))
		for _, note := range r.Notes {
			entry("note", "%s", note)
		}
		var table bytes.Buffer
		r.print(&table)
		fmt.Fprintf(&b, "</dl>\n<pre>%s</pre>\n", html.EscapeString(table.String()))
	}
	b.WriteString("</body></html>\n")
	_, err := b.WriteTo(w)
	return err
}

// print writes the rows of a report as the table that the run printed.
func (r *Report) print(w io.Writer) {
	p := &printer{w: w}
	beside := map[rowKey]map[string]*Row{}
	for i := range r.Rows {
		row := &r.Rows[i]
		p.errors = p.errors || row.Error != nil
		p.beside = p.beside || row.Beside != nil
		if row.Program == "ringo" {
			continue
		}
		if beside[row.key()] == nil {
			beside[row.key()] = map[string]*Row{}
		}
		beside[row.key()][row.Program] = row
		known := false
		for _, name := range p.peers {
			known = known || name == row.Program
		}
		if !known {
			p.peers = append(p.peers, row.Program)
		}
	}
	last := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Program != "ringo" {
			continue
		}
		if row.Collective != last {
			last = row.Collective
			io.WriteString(w, "# "+last+"\n")
			p.header()
		}
		p.row(row, beside[row.key()])
	}
}
