package setting

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Environment is the variables from which settings are read, and the wrong values found.
type Environment struct {
	Get func(name string) string
	Err error    // the first wrong value of a variable of our own; nil for none
	Odd []string // the wrong values of NCCL's variables, for the log
}

// A Variable is an environment variable that is set; both fields are empty if none is.
type Variable struct{ Name, Value string }

// OfNCCL reports whether a variable is NCCL's.
func OfNCCL(name string) bool { return strings.HasPrefix(name, "NCCL_") }

// Wrong takes note of a value where want was wanted: an error for a variable of our own. Programs and clusters set
// NCCL's variables without us in mind, so a wrong one has no effect, as in NCCL, and is no error.
func (e *Environment) Wrong(name, value, want string) {
	text := fmt.Sprintf("%s=%q: want %s", name, value, want)
	if OfNCCL(name) {
		e.Odd = append(e.Odd, text+"; it has no effect")
	} else if e.Err == nil {
		e.Err = errors.New(text)
	}
}

// Number reads a variable's value, -1 if it is wrong. A value of NCCL's above most is taken as most.
func (e *Environment) Number(name, v string, most int) int {
	n, err := ParseSize(v)
	if OfNCCL(name) {
		var ok bool
		if n, ok = NumberOfNCCL(v); !ok {
			err = strconv.ErrSyntax
		} else if err = nil; n > most {
			e.Odd = append(e.Odd, fmt.Sprintf("%s=%q is taken as %d, the most", name, v, most))
			return most
		}
	}
	if err != nil {
		e.Wrong(name, v, "a number")
		return -1
	}
	return n
}

// Words are the known words of a list; others are Wrong.
func (e *Environment) Words(name, list, separator, want string, known func(string) bool) (words []string) {
	for word := range strings.SplitSeq(list, separator) {
		if word = strings.TrimSpace(word); known(word) {
			words = append(words, word)
		} else if word != "" {
			e.Wrong(name, word, want)
		}
	}
	return words
}

// A Row of a table of settings is a field of a program's configuration, and the variables that set it where the program
// does not. The first variable that is set counts.
type Row struct {
	Name string                                   // of the field, for errors
	Said bool                                     // the program has set the field
	Read func(e *Environment, name, value string) // takes a variable's value
	// the field's value and a text of what is wanted instead, "" if the value is right; may be nil
	Wrong func() (is any, want string)
	Names []string // of the variables
}

// Own is a setting with a reader of its own.
func Own(name string, said bool, read func(e *Environment, name, value string), names ...string) Row {
	return Row{name, said, read, nil, names}
}

// Text is a setting that is any text.
func Text(name string, field *string, names ...string) Row {
	return Own(name, *field != "", func(_ *Environment, _, value string) { *field = value }, names...)
}

// Word is a text that is valid, or none.
func Word(name string, field *string, want string, valid func(string) bool, names ...string) Row {
	r := Text(name, field, names...)
	r.Wrong = func() (any, string) {
		if *field == "" || valid(*field) {
			return nil, ""
		}
		return strconv.Quote(*field), want
	}
	return r
}

// OneOf reports whether a text is one of a few words.
func OneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, s) }
}

// Number is a setting that is a multiple of unit within bounds, or 0 for the default.
func Number(name string, field *int, least, most, unit int, names ...string) Row {
	r := Own(name, *field != 0, func(e *Environment, name, value string) { *field = max(e.Number(name, value, most), 0) },
		names...)
	r.Wrong = func() (any, string) {
		switch v := *field; {
		case v == 0 || least <= v && v <= most && v%unit == 0:
			return nil, ""
		case least <= v && v <= most:
			return v, fmt.Sprintf("a multiple of %d", unit)
		case most == math.MaxInt:
			return v, fmt.Sprintf("%d or more", least)
		default:
			return v, fmt.Sprintf("%d…%d", least, most)
		}
	}
	return r
}

// Duration is a setting that is a duration above 0, or 0 for the default.
func Duration(name string, field *time.Duration, names ...string) Row {
	r := Own(name, *field != 0, func(e *Environment, name, value string) {
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			e.Wrong(name, value, "a duration such as 90s or 5m")
		}
		*field = d
	}, names...)
	r.Wrong = func() (any, string) { return *field, map[bool]string{true: "more than 0"}[*field < 0] }
	return r
}

// Switch is a setting that is on or off: yes is called with the name of a variable that is on.
func Switch(name string, yes func(name string), names ...string) Row {
	return Own(name, false, func(e *Environment, name, value string) {
		says, ok := On(value)
		want := OnWords
		if OfNCCL(name) {
			n, number := NumberOfNCCL(value)
			says, ok, want = n != 0, number, "0 or 1"
		}
		if !ok {
			e.Wrong(name, value, want)
		} else if says {
			yes(name)
		}
	}, names...)
}

// Level is one of NCCL's levels of distance.
func Level(name string, said bool, take func(name, level string), names ...string) Row {
	return Own(name, said, func(e *Environment, name, value string) {
		if level, ok := LevelOfNCCL(value); ok {
			take(name, level)
		} else {
			e.Wrong(name, value, "LOC, PIX, PXB, PHB, SYS or its number")
		}
	}, names...)
}

// Kept is a setting that keeps the variable's name and value as they are.
func Kept(name string, v *Variable, names ...string) Row {
	return Own(name, false, func(_ *Environment, name, value string) { *v = Variable{name, value} }, names...)
}

// Read sets the fields that the program has not set from the variables. from has the variable that was read, by the
// row's name.
func (e *Environment) Read(table []Row) (from map[string]string) {
	from = map[string]string{}
	for _, r := range table {
		if i := slices.IndexFunc(r.Names, func(name string) bool { return e.Get(name) != "" }); i >= 0 && !r.Said {
			from[r.Name] = r.Names[i]
			r.Read(e, r.Names[i], e.Get(r.Names[i]))
		}
	}
	return from
}

// Check is an error for the first setting with a wrong value, nil if all are right.
func Check(table []Row) error {
	for _, r := range table {
		if r.Wrong == nil {
			continue
		}
		if is, want := r.Wrong(); want != "" {
			return fmt.Errorf("%s (%s) is %v, want %s", r.Name, r.Names[0], is, want)
		}
	}
	return nil
}
