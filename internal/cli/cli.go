// Package cli adds to the standard package flag what a friendly command needs:
// flags after arguments, suggestions for misspelt words, and progress of long work.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/ringo-go/ringo/internal/setting"
)

// A UsageError is a mistake in the command line; the exit status is 2.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// An ExitStatus is the error of a command that has printed its reasons itself; the process ends with this status.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprint("exit status ", int(e)) }

// Usagef formats a UsageError.
func Usagef(format string, a ...any) error { return &UsageError{fmt.Sprintf(format, a...)} }

// Parse parses args with fs, which must have been made with ContinueOnError.
// Flags may stand before, between and after the other arguments, which are
// returned; all after "--" are arguments. The error is a HelpError when help
// was asked for (nothing is printed) and else a UsageError.
func Parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		left, err := ParseFirst(fs, args)
		switch {
		case err != nil:
			return nil, err
		case len(left) == 0:
			return rest, nil
		}
		if i := len(args) - len(left); i > 0 && args[i-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// ParseFirst is Parse, but all flags stand before the other arguments: the first of
// these and all after it are returned as they are.
func ParseFirst(fs *flag.FlagSet, args []string) ([]string, error) {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, &HelpError{fs}
	case err != nil:
		return nil, Usagef("%s", explain(fs, err))
	}
	return fs.Args(), nil
}

// explain adds a suggestion to the error of an unknown flag.
func explain(fs *flag.FlagSet, err error) string {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		if text := wrong(err.Error()); text != "" {
			return text
		}
		return err.Error()
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	text := "unknown flag -" + name
	if s := Closest(name, known); s != "" {
		text += "; did you mean -" + s + "?"
	}
	return text
}

// Given reports whether a flag was on the command line.
func Given(fs *flag.FlagSet, name string) (given bool) {
	fs.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// Unknown is the UsageError for a word that is none of known.
func Unknown(what, word string, known []string) error {
	if s := Closest(word, known); s != "" {
		return Usagef("unknown %s %q; did you mean %s?", what, word, s)
	}
	return Usagef("unknown %s %q; known are %s", what, word, strings.Join(known, ", "))
}

// Closest is the known word that most likely was meant: it differs from word by few
// letters, or one begins with the other. It is "" if there is none.
func Closest(word string, known []string) string {
	word = fold(word)
	best, least := "", max(1, len(word)/3)
	for _, k := range known {
		d := setting.Distance(word, fold(k))
		switch {
		case len(word) >= 3 && strings.HasPrefix(fold(k), word):
			d = min(d, 1)
		case len(k) >= 3 && strings.HasPrefix(word, fold(k)):
			d = min(d, least)
		}
		if d <= least && len(k) > 1 && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// fold makes All_Reduce and all-reduce the same word as allreduce.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}
