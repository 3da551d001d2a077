package plugin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// expand is C's printf for the log lines of plugins: format with integers and strings from
// ints, and floats from floats. A missing argument becomes a ?. text copies the C string at p, of
// which it may read at most most bytes. A line is cut at maxText bytes.
func expand(format string, ints []uintptr, floats []float64, text func(p uintptr, most int) string) string {
	var b strings.Builder
	integer := func() (v uintptr, ok bool) {
		if len(ints) > 0 {
			v, ints, ok = ints[0], ints[1:], true
		}
		return v, ok
	}
	for format != "" && b.Len() < maxText {
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
		layout, most := layoutOf(spec, integer)
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
			value, verb = convert(v, verb, spec, func(p uintptr) string { return text(p, most) })
		}
		if value == nil {
			b.WriteByte('?')
			continue
		}
		fmt.Fprintf(&b, "%"+layout+string(verb), value)
	}
	return strings.TrimRight(b.String()[:min(b.Len(), maxText)], "\n")
}

// layoutOf turns the text between % and verb into Go's, and returns how many bytes of a string are printed at most:
// a C string need not end after that many. integer gives the argument for a *.
func layoutOf(spec string, integer func() (uintptr, bool)) (layout string, most int) {
	for strings.Contains(spec, "*") {
		v, _ := integer()
		n := fmt.Sprint(int32(v))
		if before, after, _ := strings.Cut(spec, "*"); int32(v) < 0 && strings.HasSuffix(before, ".") {
			// a negative precision counts as none
			spec = strings.TrimSuffix(before, ".") + after
		} else {
			spec = before + n + after
		}
	}
	spec = strings.TrimRight(spec, "hljztLq")
	width, precision, precise := strings.Cut(spec, ".")
	flags := width[:len(width)-len(strings.TrimLeft(width, "-+ #0"))]
	if width = width[len(flags):]; width != "" {
		width = fmt.Sprint(bounded(width, maxText))
	}
	if !precise {
		return flags + width, maxText
	}
	most = bounded(precision, maxText)
	return flags + width + "." + fmt.Sprint(most), most
}

// bounded is the number in digits, at most most; 0 for no digits.
func bounded(digits string, most int) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > most { // too long, or no number
		return most
	}
	return max(n, 0)
}

// printable is s with a ? for each character that cannot be printed.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// convert turns an integer argument into the value that C's verb means, and returns Go's verb for the value.
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
