// Package setting reads the values of environment variables, for the packages that have settings.
package setting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// On reads a switch: yes or no in one of the usual words. ok is false for any other word.
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

// TLS reports whether RINGO_TLS, whose value is word, asks for TLS. If word is empty, any file of certificates does.
func TLS(word string, files ...string) (bool, error) {
	if word == "" {
		return strings.Join(files, "") != "", nil
	}
	on, ok := On(word)
	if !ok {
		return false, fmt.Errorf("RINGO_TLS=%q: want %s", word, OnWords)
	}
	return on, nil
}

// NumberOfNCCL reads a number as C's strtoll does: blanks in front are left out, 0x begins a hexadecimal number and 0
// an octal one, and text behind the number is left out. Without a number, or with too large a one, n is 0 and ok false.
func NumberOfNCCL(v string) (n int, ok bool) {
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
	i, err := strconv.ParseInt(sign+digits[:end], base, 0)
	if err != nil {
		return 0, false
	}
	return int(i), true
}

// levelsOfNCCL are NCCL's distances between two devices, the nearest first; oldLevels are the levels by number.
var (
	levelsOfNCCL = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}
	oldLevels    = []string{"LOC", "PIX", "PXB", "PHB", "SYS"}
)

// LevelOfNCCL reads a level such as NCCL_NET_GDR_LEVEL as NCCL does: one of its words, here in any case, or a number;
// too large a number is SYS. NCCL ignores any other text, and ok is false.
func LevelOfNCCL(v string) (level string, ok bool) {
	if level = strings.ToUpper(v); slices.Contains(levelsOfNCCL, level) {
		return level, true
	}
	if v == "" || v[0] < '0' || v[0] > '9' {
		return "", false
	}
	n, ok := NumberOfNCCL(v)
	if !ok { // more digits than any number has
		return "SYS", true
	}
	return oldLevels[min(n, len(oldLevels)-1)], true
}
