package plugin

import (
	"fmt"
	"strings"
)

// expand is C's printf for the log lines of plugins: format with integers and strings from
// ints, and floats from floats. Where either runs out a ? stands.
func expand(format string, ints []uintptr, floats []float64, text func(uintptr) string) string {
	var b strings.Builder
	integer := func() (v uintptr, ok bool) {
		if len(ints) > 0 {
			v, ints, ok = ints[0], ints[1:], true
		}
		return v, ok
	}
	for format != "" {
		before, after, found := strings.Cut(format, "%")
		b.WriteString(before)
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !strings.ContainsRune("-+ #0123456789.*hljztLq", r) })
		if end < 0 {
			b.WriteString("%" + after)
			break
		}
		spec, verb := after[:end], after[end]
		format = after[end+1:]
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		layout := "%"
		for _, r := range spec {
			switch {
			case r == '*':
				v, _ := integer()
				layout += fmt.Sprint(int32(v))
			case !strings.ContainsRune("hljztLq", r):
				layout += string(r)
			}
		}
		var value any
		switch verb {
		case 'e', 'f', 'g', 'E', 'G', 'F', 'a':
			if len(floats) > 0 {
				value, floats = floats[0], floats[1:]
			}
			if verb == 'a' {
				verb = 'x'
			}
		default:
			v, ok := integer()
			if !ok {
				break
			}
			value, verb = convert(v, verb, spec, text)
		}
		if value == nil {
			b.WriteByte('?')
			continue
		}
		fmt.Fprintf(&b, layout+string(verb), value)
	}
	return strings.TrimRight(b.String(), "\n")
}

// convert is an integer argument as what a verb of C means, and the verb of Go for that.
func convert(v uintptr, verb byte, spec string, text func(uintptr) string) (any, byte) {
	long := strings.ContainsAny(spec, "ljztq")
	switch verb {
	case 's':
		if v == 0 {
			return "(null)", 's'
		}
		return text(v), 's'
	case 'c':
		return rune(byte(v)), 'c'
	case 'p':
		return fmt.Sprintf("%#x", v), 's'
	case 'd', 'i':
		switch {
		case long:
			return int64(v), 'd'
		case strings.Contains(spec, "hh"):
			return int8(v), 'd'
		case strings.Contains(spec, "h"):
			return int16(v), 'd'
		}
		return int32(v), 'd'
	case 'u', 'x', 'X', 'o':
		u := uint64(v)
		switch {
		case long:
		case strings.Contains(spec, "hh"):
			u = uint64(uint8(v))
		case strings.Contains(spec, "h"):
			u = uint64(uint16(v))
		default:
			u = uint64(uint32(v))
		}
		if verb == 'u' {
			verb = 'd'
		}
		return u, verb
	}
	return nil, verb
}
