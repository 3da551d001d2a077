package check

import (
	"errors"
	"io"

	"github.com/ringo-go/ringo/internal/cli"
)

// write writes the report in all forms asked for. An error with one file does not keep it from writing the others.
func (f *commandFlags) write(r *report, stdout io.Writer) error {
	metrics := f.metrics
	if f.serves() {
		metrics = ""
	}
	text, errs := stdout, []error(nil)
	for _, out := range []struct {
		flag, file string
		write      func(io.Writer) error
	}{{"-json", f.json, r.WriteJSON}, {"-metrics", metrics, r.WriteMetrics}, {"-junit", f.junit, r.WriteJUnit},
		{"-svg", f.svg, r.WriteSVG}, {"-html", f.html, r.WriteHTML}} {
		errs = append(errs, cli.Save(out.flag, out.file, stdout, out.write))
		if out.file == "-" {
			text = io.Discard
		}
	}
	return errors.Join(append(errs, r.Print(text))...)
}
