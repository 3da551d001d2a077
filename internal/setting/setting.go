// Package setting reads the values of environment variables, for all that read some.
package setting

import (
	"strconv"
	"strings"
)

// On reads a switch: yes or no in one of the usual words. ok is false if it is none.
func On(value string) (on, ok bool) {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true, true
	case "0", "false", "no", "off":
		return false, true
	}
	return false, false
}

// OnWords are the words of On, for errors.
const OnWords = "1, true, yes, on or 0, false, no, off"

// NumberOfNCCL is what C's strtoll makes of a value: blanks in front are left out, 0x is of hexadecimal numbers and 0 of
// octal ones, what follows the number is left out, and a word is 0. What is too large a number is 0, which leaves the choice.
func NumberOfNCCL(v string) int {
	digits, base, sign := strings.TrimLeft(v, " \t\n\v\f\r"), 10, ""
	if digits != "" && strings.ContainsRune("+-", rune(digits[0])) {
		sign, digits = digits[:1], digits[1:]
	}
	is := func(c byte) bool { return strings.IndexByte("0123456789abcdef"[:base], c) >= 0 }
	digits = strings.ToLower(digits)
	switch {
	case strings.HasPrefix(digits, "0x"):
		if base = 16; len(digits) > 2 && is(digits[2]) {
			digits = digits[2:]
		}
	case strings.HasPrefix(digits, "0"):
		base = 8
	}
	end := 0
	for end < len(digits) && is(digits[end]) {
		end++
	}
	n, err := strconv.ParseInt(sign+digits[:end], base, 0)
	if err != nil {
		return 0
	}
	return int(n)
}
