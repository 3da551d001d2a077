package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Output is a file that a flag has written. "" is none, and "-" standard output.
type Output struct {
	Flag, File string
	Ends       []string // one of which ends the file's name in any case of letters; none for any end
}

// Outputs returns where the text of a command goes: to stdout, or nowhere if one of its files is standard output. A
// file that cannot be written is a UsageError, for users want to know before the work, and so are a name with another
// end, and two files of one name.
func Outputs(stdout io.Writer, list ...Output) (text io.Writer, err error) {
	seen := map[string]string{}
	text = stdout
	for _, o := range list {
		if o.File == "" {
			continue
		}
		if other := seen[o.File]; other != "" {
			return nil, Usagef("%s and %s are both %s: which of them?", other, o.Flag, o.File)
		}
		if seen[o.File] = o.Flag; o.File == "-" {
			text = io.Discard
			continue
		}
		if err := o.check(); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// check returns a UsageError if the file cannot be written, or has another end.
func (o Output) check() error {
	info, err := os.Stat(o.File)
	special := err == nil && !info.Mode().IsRegular() && !info.IsDir() // such as /dev/fd/63
	end := strings.ToLower(filepath.Ext(o.File))
	if len(o.Ends) > 0 && !special && !slices.Contains(o.Ends, end) {
		return Usagef("%s %s: the name must end in %s", o.Flag, o.File, strings.Join(o.Ends, " or "))
	}
	if special {
		return nil
	}
	f, err := os.OpenFile(o.File, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) { // can it be made?
		if f, err = os.CreateTemp(filepath.Dir(o.File), ".ringo-"); err == nil {
			defer os.Remove(f.Name())
		}
	}
	if err != nil {
		if p := (*os.PathError)(nil); errors.As(err, &p) { // not the name of a file that was tried
			err = fmt.Errorf("open %s: %w", filepath.Dir(o.File), p.Err)
		}
		return Usagef("%s %s: %v", o.Flag, o.File, err)
	}
	f.Close()
	return nil
}

// Save has write write an Output. A regular file is replaced at once, since somebody may read it at any time.
func Save(flag, file string, stdout io.Writer, write func(io.Writer) error) error {
	var err error
	switch file {
	case "":
	case "-":
		err = write(stdout)
	default:
		err = save(file, write)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, file, err)
	}
	return nil
}

// SaveJSON has a report written as an Output.
func SaveJSON(flag, file string, stdout io.Writer, report any) error {
	return Save(flag, file, stdout, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(report)
	})
}

func save(file string, write func(io.Writer) error) error {
	target, err := filepath.EvalSymlinks(file) // a link stays one
	if err != nil {
		target = file
	}
	info, err := os.Stat(target)
	part := fmt.Sprintf("%s.%08x", target, rand.Uint32())
	var f *os.File
	if err != nil || info.Mode().IsRegular() {
		f, err = os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	} else {
		err = os.ErrInvalid // a device or a pipe
	}
	if err != nil { // the folder may be another's
		if f, err = os.Create(target); err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	if info != nil {
		_ = f.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(part, target)
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}
