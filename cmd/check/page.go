package check

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// pageRows is how many measurements of a stage the page has.
const pageRows = 2000

// pageStyle has the colours of the page of "ringo play", light and dark.
const pageStyle = `:root{--ground:#fbfbf9;--paper:#fff;--ink:#1b1f24;--faint:#5c6670;--line:#d5d9de;--good:#007a5a;--warn:#b45f00;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--paper:#1c2026;--ink:#e8eaed;--faint:#a3acb6;--line:#363d46;--good:#2fc79a;--warn:#e69f00;--bad:#ff8a80}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1280px;padding:16px;background:var(--ground);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
h1{font-size:24px;margin:0}h2{font-size:15px;margin:0 0 10px}.faint{color:var(--faint)}
section{background:var(--paper);border:1px solid var(--line);border-radius:12px;padding:14px 16px;margin:16px 0;overflow-x:auto}
table{border-collapse:collapse}td,th{text-align:left;padding:.25em 1em .25em 0;vertical-align:top}th{color:var(--faint);font-weight:400}
tr+tr td{border-top:1px solid var(--line)}.finding{border-left:4px solid;padding:.3em .8em;margin:.6em 0}.finding b{text-transform:capitalize}
.broken{color:var(--bad)}.degraded,.unjudged{color:var(--warn)}.well{color:var(--good)}.finding span{color:var(--ink)}
svg .ground{fill:transparent}svg text:not(.value){fill:var(--ink)}svg text.blamed:not(.value){fill:var(--bad)}
svg rect{stroke-opacity:.9}summary{cursor:pointer}.number{text-align:right;font-variant-numeric:tabular-nums}
@media(max-width:600px){body{padding:8px}.asks{display:none}}`

// headline is the verdict in a sentence.
func (r *report) headline() string {
	for _, f := range r.Findings {
		if f.Severity == r.Verdict && f.Severity != well {
			more := ""
			if n := r.count(f.Severity) - 1; n > 0 {
				more = fmt.Sprintf(", and %s more", count(n, "finding"))
			}
			f.Text, _, _ = strings.Cut(f.Text, ": ") // without the remedy
			return fmt.Sprintf("%s: %s%s", upper(r.Verdict.String()), f, more)
		}
	}
	return fmt.Sprintf("%s: %s, %s", upper(r.Verdict.String()), count(len(r.Hosts), "host"),
		count(len(r.Measurements), "measurement"))
}

// count is how many findings are of a severity.
func (r *report) count(s severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// upper makes the first letter a capital.
func upper(s string) string { return string(bytes.ToUpper([]byte(s[:1]))) + s[1:] }

// WriteHTML writes the report as a page of its own: the verdict in a sentence, findings, stages, heat maps, and what
// was measured.
func (r *report) WriteHTML(w io.Writer) error {
	var b bytes.Buffer
	headline := escape(r.headline())
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "+
		"content=\"width=device-width\"><title>%s</title>\n<style>%s</style>\n",
		"ringo check: "+headline, pageStyle)
	class := label(r.Verdict)
	if r.Verdict == well {
		class = "well"
	}
	fmt.Fprintf(&b, "<h1 class=\"%s\">%s</h1>\n<p class=\"faint\">ringo %s, %s, %s, %.1f s</p>\n", class, headline,
		escape(r.Version), r.Started.Format("2006-01-02 15:04:05 MST"), count(len(r.Hosts), "host"), r.Took)
	if len(r.Findings) > 0 {
		b.WriteString("<section><h2>Findings, worst first</h2>\n")
		for _, f := range r.Findings {
			fmt.Fprintf(&b, "<div class=\"finding %s\"><b>%s</b> <span>%s</span></div>\n", label(f.Severity), label(f.Severity),
				escape(f.String()))
		}
		b.WriteString("</section>\n")
	}
	b.WriteString("<section><h2>Stages</h2><table>\n<tr><th>stage<th>time<th>result<th class=\"asks\">question\n")
	for i := range r.Stages {
		s := &r.Stages[i]
		fmt.Fprintf(&b, "<tr><td>%s<td>%.1f s<td>%s<td class=\"asks faint\">%s\n", escape(s.Name), s.Took,
			escape(s.result(r)), escape(s.Asks))
	}
	b.WriteString("</table></section>\n")
	for _, m := range r.drawn() {
		b.WriteString("<section>\n")
		beginSVG(&b, m.wide(), m.high())
		m.draw(&b, mapGap/2)
		b.WriteString("</svg></section>\n")
	}
	for i := range r.Stages {
		r.measured(&b, &r.Stages[i])
	}
	b.WriteString("</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// measured writes the measurements of a stage, folded.
func (r *report) measured(b *bytes.Buffer, s *stageReport) {
	list := r.Of(s.Name, "")
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "<section><details><summary>%s: %s</summary><table>\n<tr><th>what<th>quantity<th "+
		"class=\"number\">value<th>unit\n", escape(s.Name), count(len(list), "measurement"))
	for _, m := range list[:min(len(list), pageRows)] {
		value := digits(m.Value)
		if m.Text != "" {
			value = escape(m.Text)
		}
		fmt.Fprintf(b, "<tr><td>%s<td>%s<td class=\"number\">%s<td>%s\n", escape(m.Subject.String()), escape(m.Quantity),
			value, escape(m.Unit))
	}
	if n := len(list) - pageRows; n > 0 {
		fmt.Fprintf(b, "<tr><td>%d more are in the report that -json writes\n", n)
	}
	b.WriteString("</table></details></section>\n")
}
