package cli

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A value is what a flag is set to. set says what is wanted in place of a text that is not taken.
type value struct {
	set   func(text string) error
	text  func() string
	known []string // words of which it is one; nil for any other kind
}

func (v value) Set(text string) error { return v.set(text) }

func (v value) String() string {
	if v.text == nil { // the zero value, which package flag makes
		return ""
	}
	return v.text()
}

// Var defines a flag under all its names, after each of which its usage may stand. The error of set says what is
// wanted, without the flag's name.
func Var(fs *flag.FlagSet, set func(text string) error, text func() string, names ...string) {
	for _, n := range names {
		name, usage, _ := strings.Cut(n, " ")
		fs.Var(value{set: set, text: text}, name, usage)
	}
}

// Int defines a flag for a whole number from least to most. *p is its default, which may lie elsewhere; want says what
// the number is, such as "1 to 64 ranks".
func Int(fs *flag.FlagSet, p *int, least, most int, want string, names ...string) {
	Var(fs, func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want %s", want)
		}
		*p = n
		return nil
	}, func() string { return strconv.Itoa(*p) }, names...)
}

// Float defines a flag for a finite number that right accepts.
func Float(fs *flag.FlagSet, p *float64, right func(float64) bool, want string, names ...string) {
	Var(fs, func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || !right(x) {
			return fmt.Errorf("want %s", want)
		}
		*p = x
		return nil
	}, func() string { return strconv.FormatFloat(*p, 'g', -1, 64) }, names...)
}

// Longest is the most that a Duration may be: more would not fit into clocks.
const Longest = 10 * 365 * 24 * time.Hour

// Duration defines a flag for a time of at least least. *p is its default.
func Duration(fs *flag.FlagSet, p *time.Duration, least time.Duration, names ...string) {
	want := fmt.Sprintf("want a time such as 30s or 5m, of %v or more", least)
	switch {
	case least == 0:
		want = "want 0 or more, such as 30s or 5m"
	case least == Moment:
		want = "want more than 0, such as 30s or 5m"
	}
	Var(fs, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > Longest {
			return fmt.Errorf("%s", want)
		}
		*p = d
		return nil
	}, func() string { return p.String() }, names...)
}

// Moment is the least Duration that is not 0.
const Moment = time.Nanosecond

// Word defines a flag for one of some words, in any case of letters, which what calls. *p is its default.
func Word(fs *flag.FlagSet, p *string, what string, known []string, names ...string) {
	set := func(text string) (err error) {
		*p, err = OneOf(what, text, known)
		return err
	}
	for _, n := range names {
		name, usage, _ := strings.Cut(n, " ")
		fs.Var(value{set, func() string { return *p }, known}, name, usage)
	}
}

// Known returns the words that a flag of Word takes, or nil for any other flag.
func Known(fs *flag.FlagSet, name string) []string {
	if f := fs.Lookup(name); f != nil {
		v, _ := f.Value.(value)
		return v.known
	}
	return nil
}

// OneOf returns the known word that differs from word by the case of letters at most, or the error of Unknown.
func OneOf(what, word string, known []string) (string, error) {
	for _, k := range known {
		if strings.EqualFold(k, word) {
			return k, nil
		}
	}
	return "", Unknown(what, word, known)
}

// List defines a flag for values with commas between them, each of which one takes. Nothing between two is an error.
func List[T any](fs *flag.FlagSet, p *[]T, one func(text string) (T, error), print func(T) string, names ...string) {
	Var(fs, func(text string) error {
		var list []T
		for _, word := range strings.Split(text, ",") {
			x, err := one(word)
			if err != nil {
				return err
			}
			list = append(list, x)
		}
		*p = list
		return nil
	}, func() string {
		var words []string
		for _, x := range *p {
			words = append(words, print(x))
		}
		return strings.Join(words, ",")
	}, names...)
}

// wrong is the sentence of a flag whose text is not taken, made of package flag's; "" if text is another error.
func wrong(text string) string {
	rest, ok := strings.CutPrefix(text, "invalid value ")
	if !ok {
		if rest, ok = strings.CutPrefix(text, "invalid boolean value "); !ok {
			return ""
		}
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return ""
	}
	given, _ := strconv.Unquote(quoted)
	rest = strings.TrimPrefix(strings.TrimPrefix(rest[len(quoted):], " for flag"), " for")
	name, why, ok := strings.Cut(strings.TrimSpace(rest), ": ")
	if !ok {
		return ""
	}
	if slices.Contains([]string{"parse error", "value out of range"}, why) {
		why = "this is not what the flag takes"
	}
	if strings.HasPrefix(why, "unknown ") {
		return name + ": " + why
	}
	if given == "" || strings.ContainsAny(given, " \t") {
		given = quoted
	}
	return name + " " + given + ": " + why
}
