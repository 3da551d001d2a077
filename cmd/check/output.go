package check

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// write writes the report in all forms asked for. An error with one file does not keep it from writing the others.
func (f *commandFlags) write(r *report, stdout io.Writer) error {
	metrics := f.metrics
	if f.serves() {
		metrics = ""
	}
	printed := false
	var errs []error
	for _, out := range []struct {
		file  string
		write func(io.Writer) error
	}{{f.json, r.WriteJSON}, {metrics, r.WriteMetrics}, {f.junit, r.WriteJUnit}, {f.svg, r.WriteSVG},
		{f.html, r.WriteHTML}} {
		errs = append(errs, writeTo(out.file, stdout, out.write))
		printed = printed || out.file == "-"
	}
	if !printed {
		errs = append(errs, r.Print(stdout))
	}
	return errors.Join(errs...)
}

// writeTo has a file written, if name is not empty. A regular file is replaced at once, since somebody may read it at
// any time.
func writeTo(name string, stdout io.Writer, write func(io.Writer) error) error {
	switch name {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // a device or a pipe
		file, err := os.Create(name)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	if target, err := filepath.EvalSymlinks(name); err == nil { // a link stays one
		name = target
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".ringo-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
