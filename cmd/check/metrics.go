package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/web"
)

// A report as Prometheus text, and the server that answers with it at /metrics.

// WriteMetrics writes the report as Prometheus text: the verdict, the number of findings by
// severity, each finding, and all numbers measured.
func (r *report) WriteMetrics(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# HELP ringo_check_status 0 well, 1 degraded, 2 broken, 3 could not be judged.\n# TYPE " +
		"ringo_check_status gauge\n")
	fmt.Fprintf(&b, "ringo_check_status %d\n", int(r.Verdict))
	b.WriteString("# HELP ringo_check_time_seconds When the check began.\n# TYPE ringo_check_time_seconds gauge\n")
	fmt.Fprintf(&b, "ringo_check_time_seconds %d\n", r.Started.Unix())
	b.WriteString("# HELP ringo_check_duration_seconds How long it took.\n# TYPE ringo_check_duration_seconds gauge\n")
	fmt.Fprintf(&b, "ringo_check_duration_seconds %g\n", r.Took)
	b.WriteString("# HELP ringo_check_findings Anomalies by severity.\n# TYPE ringo_check_findings gauge\n")
	for s := well; s <= unjudged; s++ {
		n := 0
		for _, f := range r.Findings {
			if f.Severity == s {
				n++
			}
		}
		fmt.Fprintf(&b, "ringo_check_findings{severity=%s} %d\n", quote(s.String()), n)
	}
	b.WriteString("# HELP ringo_check_finding An anomaly.\n# TYPE ringo_check_finding gauge\n")
	seen := map[string]bool{}
	for _, f := range r.Findings {
		line := fmt.Sprintf("ringo_check_finding{severity=%s,code=%s,stage=%s,%s} 1\n", quote(f.Severity.String()),
			quote(f.Code), quote(f.Stage), f.Subject.labels())
		if !seen[line] {
			seen[line] = true
			b.WriteString(line)
		}
	}
	// A metric's lines stand together.
	byName := map[string][]string{}
	for _, m := range r.Measurements {
		if m.Text != "" && m.Value == 0 {
			continue
		}
		words := strings.FieldsFunc(strings.ToLower(m.Stage+"_"+m.Quantity),
			func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
		name := "ringo_check_" + strings.Join(words, "_")
		byName[name] = append(byName[name], fmt.Sprintf("%s{%s,rank=\"%d\",unit=%s} %g\n", name, m.Subject.labels(), m.Rank,
			quote(m.Unit), m.Value))
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "# HELP %s Measured by ringo check, in the unit of the label.\n# TYPE %s gauge\n", name, name)
		last := map[string]string{} // of what was measured again the last counts: labels must differ
		var order []string
		for _, line := range byName[name] {
			at := strings.LastIndexByte(line, ' ')
			if _, ok := last[line[:at]]; !ok {
				order = append(order, line[:at])
			}
			last[line[:at]] = line[at:]
		}
		for _, labels := range order {
			b.WriteString(labels + last[labels])
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// labels are those of Prometheus for a subject.
func (s subject) labels() string {
	text := fmt.Sprintf("host=%s,part=%s", quote(s.Host), quote(s.Part))
	if s.IsPair() {
		text += fmt.Sprintf(",to_host=%s,to_part=%s", quote(s.To.Host), quote(s.To.Part))
	}
	return text
}

// quote writes a label's value.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(harmless(strings.ToValidUTF8(s, "\uFFFD"))) + `"`
}

// A metricsServer serves the last report at /metrics.
type metricsServer struct {
	ln     net.Listener
	report atomic.Pointer[report]
}

func (m *metricsServer) listen(ctx context.Context, addr string) (err error) {
	if m.ln, err = cli.Listen("-metrics", addr); err != nil {
		return err
	}
	go web.Serve(ctx, m.ln, m.answer)
	return nil
}

func (m *metricsServer) answer(path string) web.Answer {
	if path != "/metrics" {
		return web.Answer{}
	}
	r := m.report.Load()
	if r == nil {
		return web.Answer{Status: "503 Service Unavailable", Type: "text/plain",
			Body: []byte("the first check is under way: there is nothing to report yet\n")}
	}
	var b bytes.Buffer
	_ = r.WriteMetrics(&b) // a Buffer takes all
	return web.Answer{Type: "text/plain; version=0.0.4", Body: b.Bytes()}
}

func (m *metricsServer) close() { m.ln.Close() }
