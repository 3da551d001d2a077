package setting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes such as 4096, 128K, 4M or 1G, by powers of 1024.
func ParseSize(s string) (int, error) {
	mult := 1
	switch {
	case strings.HasSuffix(s, "K"), strings.HasSuffix(s, "k"):
		mult = 1 << 10
	case strings.HasSuffix(s, "M"), strings.HasSuffix(s, "m"):
		mult = 1 << 20
	case strings.HasSuffix(s, "G"), strings.HasSuffix(s, "g"):
		mult = 1 << 30
	}
	if mult > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || int64(n) > min(1<<50, math.MaxInt)/int64(mult) {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return n * mult, nil
}

// FormatSize is the text that ParseSize reads as n.
func FormatSize(n int64) string {
	unit := 0
	for n != 0 && n%1024 == 0 && unit < 3 {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatInt(n, 10) + []string{"", "K", "M", "G"}[unit]
}
