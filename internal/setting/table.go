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

// An Environment is variables while settings are read from them.
type Environment struct {
	Get func(name string) string
	Err error    // the first value of a variable of our own that cannot be
	Odd []string // the same of NCCL's, which the log says
}

// A Variable is one that is set; both are empty if none is.
type Variable struct{ Name, Value string }

// OfNCCL reports whether a variable is NCCL's.
func OfNCCL(name string) bool { return strings.HasPrefix(name, "NCCL_") }

// Wrong takes note of a value that is not what is wanted: an error, but of a variable of NCCL's, which has no effect
// then. Programs and clusters set those without us in mind, so they are read as there, and are no error.
func (e *Environment) Wrong(name, value, want string) {
	text := fmt.Sprintf("%s=%q: want %s", name, value, want)
	if OfNCCL(name) {
		e.Odd = append(e.Odd, text+"; it has no effect")
	} else if e.Err == nil {
		e.Err = errors.New(text)
	}
}

// Number reads a variable's value. One of NCCL's is at most so much, and below 0 if it says nothing.
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

// Words are those of a list that are known.
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

// A Row of a table of settings is a part of what a program says, and the variables that say it where the program does
// not, of which the first that is set counts.
type Row struct {
	Name string                                   // of the field, for errors
	Said bool                                     // by the program
	Read func(e *Environment, name, value string) // takes a variable's value
	// what is wanted instead of what the setting is, if anything; may be nil
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

// Duration is a setting that is one above 0, or 0 for the default.
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

// Switch is on or off: yes is given the variable that says so.
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

// Kept is a variable that is kept as it is.
func Kept(name string, v *Variable, names ...string) Row {
	return Own(name, false, func(_ *Environment, name, value string) { *v = Variable{name, value} }, names...)
}

// Read takes what the program has not said from the variables, and gives those that have said something, by the row's
// name.
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

// Check is what is wrong with the first setting that cannot be.
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
