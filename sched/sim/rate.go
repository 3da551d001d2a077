package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseRate reads a rate as bytes a second: "400G" and "400 Gb/s" are bits a second, as networks
// are sold, "48GB" and "48 GB/s" are bytes. K, M, G and T are powers of 1000.
func ParseRate(text string) (float64, error) {
	refuse := func() (float64, error) {
		return 0, fmt.Errorf("rate %q: write bits a second such as 400G, or bytes such as 50GB", text)
	}
	t, bits := strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), "/s"), 8.0
	t = strings.TrimSuffix(t, "it")
	switch {
	case strings.HasSuffix(t, "B"):
		t, bits = t[:len(t)-1], 1
	case strings.HasSuffix(t, "b"):
		t = t[:len(t)-1]
	}
	unit := 1.0
	if n := len(t); n > 0 {
		if i := strings.IndexByte("KMGT", t[n-1]&^0x20); i >= 0 {
			unit, t = math.Pow10(3*(i+1)), t[:n-1]
		}
	}
	v, err := strconv.ParseFloat(t, 64)
	v *= unit / bits
	if err != nil || !(v > 0) || math.IsInf(v, 0) || math.IsInf(1/v, 0) {
		return refuse()
	}
	return v, nil
}

// FormatRate is a text that ParseRate reads, such as "48 GB/s".
func FormatRate(rate float64) string {
	unit := "B/s"
	for _, u := range []string{"KB/s", "MB/s", "GB/s"} {
		if rate < 1000 {
			break
		}
		rate, unit = rate/1000, u
	}
	return strconv.FormatFloat(rate, 'g', 10, 64) + " " + unit
}
