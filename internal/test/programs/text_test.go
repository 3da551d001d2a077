package programs

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/kernels"
)

var streamNames = [streams]string{"own", "own2", "blocking", "legacy", "thread"}

func (s Stream) String() string { return streamNames[s] }

// String is the program's text: a line for the program, then one for each step. Zero fields
// are left out.
func (p *Program) String() string {
	var b strings.Builder
	writeFields(&b, "program", p)
	b.WriteString("\n")
	for i := range p.Steps {
		s := &p.Steps[i]
		b.WriteString(s.String() + "\n")
	}
	return b.String()
}

// String is the step's line; the calls of a group follow on lines of their own.
func (s *Step) String() string {
	var b strings.Builder
	writeFields(&b, s.Do, s)
	for i := range s.Calls {
		b.WriteString("\n\t" + s.Calls[i].String())
	}
	return b.String()
}

// writeFields writes a verb and the fields of a struct that are not zero.
func writeFields(b *strings.Builder, verb string, of any) {
	b.WriteString(verb)
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Tag.Get("p"), v.Field(i)
		if name == "-" || f.IsZero() {
			continue
		}
		b.WriteString(" " + name + "=")
		switch x := f.Interface().(type) {
		case []int:
			b.WriteString(numbers(x))
		case [][]int:
			rows := make([]string, len(x))
			for i, row := range x {
				rows[i] = numbers(row)
			}
			b.WriteString(strings.Join(rows, "/"))
		default:
			fmt.Fprint(b, x)
		}
	}
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// Parse reads a program's text.
func Parse(text string) (*Program, error) {
	p := new(Program)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		inGroup := i > 0 && strings.TrimLeft(line, "\t ") != line
		words := strings.Fields(line)
		var err error
		switch {
		case len(words) == 0:
			continue
		case i == 0:
			err = parseFields(p, words[1:])
		default:
			s := Step{Do: words[0]}
			if err = parseFields(&s, words[1:]); err != nil {
				break
			}
			if !inGroup {
				p.Steps = append(p.Steps, s)
			} else if last := len(p.Steps) - 1; last >= 0 && (p.Steps[last].Do == Group || p.Steps[last].Do == Parts) {
				p.Steps[last].Calls = append(p.Steps[last].Calls, s)
			} else {
				err = fmt.Errorf("a line that is indented belongs to a group")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("programs: line %d, %q: %w", i+1, line, err)
		}
	}
	return p, nil
}

// parseFields reads what writeFields writes behind the verb.
func parseFields(of any, words []string) error {
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		fields[v.Type().Field(i).Tag.Get("p")] = v.Field(i)
	}
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		f, ok := fields[name]
		if !ok || name == "-" {
			return fmt.Errorf("unknown field %q", name)
		}
		if err := parseField(f, text); err != nil {
			return err
		}
	}
	return nil
}

func parseField(f reflect.Value, text string) (err error) {
	switch x := f.Addr().Interface().(type) {
	case *string:
		*x = text
	case *uint64:
		*x, err = strconv.ParseUint(text, 10, 64)
	case *int:
		*x, err = strconv.Atoi(text)
	case *bool:
		*x, err = strconv.ParseBool(text)
	case *[]int:
		*x, err = parseNumbers(text)
	case *[][]int:
		for _, row := range strings.Split(text, "/") {
			var list []int
			if list, err = parseNumbers(row); err != nil {
				return err
			}
			*x = append(*x, list)
		}
	case *Stream:
		*x, err = named(text, Own, streams)
	case *call.Kind:
		*x, err = named(text, call.Barrier, call.Kinds)
	case *kernels.Kind:
		*x, err = named(text, kernels.KindSum, kernels.KindUser)
	case *kernels.DataType:
		*x, err = kernels.ParseType(text)
	}
	return err
}

func parseNumbers(text string) (list []int, err error) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// named is the value in [first, end) that prints as text.
func named[T interface {
	fmt.Stringer
	~int | ~uint8
}](text string, first, end T) (T, error) {
	for x := first; x < end; x++ {
		if x.String() == text {
			return x, nil
		}
	}
	return 0, fmt.Errorf("unknown name %q", text)
}
