package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxSize is the largest size that ParseSize takes: 1 EiB, far beyond any
// memory, so that sums and products of a few sizes cannot overflow an int64.
const maxSize = 1 << 60

// ParseSize reads a number of bytes as nccl-tests does, with K, M, G or T for
// powers of 1024: "8", "64K", "1.5M". "KB" and "KiB" mean K.
func ParseSize(s string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, fmt.Errorf("parse size: %q %s; write for example 8, 64K, 1.5M or 2G", s, why)
	}
	t := strings.ToUpper(strings.TrimSpace(s))
	if n := strings.TrimSuffix(strings.TrimSuffix(t, "B"), "I"); len(n) > 0 && strings.ContainsAny(n[len(n)-1:], "KMGT") {
		t = n
	} else {
		t = strings.TrimSuffix(t, "B")
	}
	unit := 1.0
	if i := strings.IndexAny(t, "KMGT"); i >= 0 && i == len(t)-1 {
		unit = math.Exp2(10 * float64(1+strings.IndexByte("KMGT", t[i])))
		t = t[:i]
	}
	if strings.Trim(t, "0123456789.") != "" {
		return bad("is not a size")
	}
	v, err := strconv.ParseFloat(t, 64)
	switch {
	case err != nil:
		return bad("is not a size")
	case v*unit > maxSize:
		return bad("is too large")
	case v*unit != math.Trunc(v*unit):
		return bad("is not a whole number of bytes")
	}
	return int64(v * unit), nil
}

// FormatSize is the shortest text that ParseSize reads back as n.
func FormatSize(n int64) string {
	unit := 0
	for n != 0 && n%1024 == 0 && unit < 4 {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatInt(n, 10) + [...]string{"", "K", "M", "G", "T"}[unit]
}

// A Sweep is a list of sizes: from Min, each Factor times the one before, or Step
// bytes more if Factor is 0, and Max as the last. After 0 comes 1 when
// multiplying.
type Sweep struct {
	Min, Max, Step int64
	Factor         float64
}

// maxSizes bounds a Sweep: more rows than that are a mistake (a Step of 1).
const maxSizes = 10000

// Sizes lists the sizes in bytes.
func (s Sweep) Sizes() ([]int64, error) {
	switch {
	case s.Min > s.Max:
		return nil, fmt.Errorf("sizes: -b %s is more than -e %s", FormatSize(s.Min), FormatSize(s.Max))
	case s.Factor == 0 && s.Step <= 0 && s.Min < s.Max:
		return nil, fmt.Errorf("sizes: give a step -i of at least 1 or a factor -f above 1")
	case s.Factor != 0 && !(s.Factor > 1):
		return nil, fmt.Errorf("sizes: factor -f %g must be above 1", s.Factor)
	}
	var all []int64
	for n := s.Min; ; n = min(n, s.Max) {
		if all = append(all, n); len(all) > maxSizes {
			return nil, fmt.Errorf("sizes: more than %d rows; give a larger step -i or a factor -f", maxSizes)
		}
		if n == s.Max {
			break
		}
		switch {
		case s.Factor == 0:
			n += s.Step
		case n == 0:
			n = 1
		default:
			n = max(n+1, int64(float64(n)*s.Factor))
		}
	}
	return all, nil
}
