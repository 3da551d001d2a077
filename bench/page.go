package bench

import (
	"bytes"
	"html/template"
	"io"
)

// page is the whole of an HTML report: no script, no other files.
var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ringo bench</title>
<meta name="viewport" content="width=device-width">
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
svg { width: 100%; height: auto } pre { overflow-x: auto; font-size: 12.5px } dt { float: left; width: 7em; color: #666 }
</style></head><body>
<h1>ringo bench</h1>
{{.Picture}}
{{range .Runs}}<h2>{{.Report.Host}}, {{.Report.Date.Format "2006-01-02 15:04"}} UTC</h2>
<dl><dt>machine</dt><dd>{{.Report.CPU}}, {{.Report.Cores}} cores, {{.Report.OS}}/{{.Report.Arch}}</dd>
<dt>program</dt><dd>ringo {{.Report.Version}}, {{.Report.Go}}, {{.Report.Ranks}} ranks, {{.Report.Transport}}</dd>
<dt>command</dt><dd><code>ringo bench{{range .Report.Flags}} {{.}}{{end}}</code></dd>
{{range .Report.Notes}}<dt>note</dt><dd>{{.}}</dd>{{end}}</dl>
<pre>{{.Table}}</pre>
{{end}}</body></html>
`))

// writePage writes reports as a page with picture and tables.
func writePage(w io.Writer, title string, reports []*Report) error {
	var picture bytes.Buffer
	if err := drawAll(&picture, "svg", title, reports); err != nil {
		return err
	}
	type run struct {
		Report *Report
		Table  string
	}
	data := struct {
		Picture template.HTML
		Runs    []run
	}{Picture: template.HTML(picture.String())}
	for _, rep := range reports {
		var table bytes.Buffer
		rep.print(&table)
		data.Runs = append(data.Runs, run{rep, table.String()})
	}
	return page.Execute(w, data)
}

// print writes the rows of a report as the table they were.
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
