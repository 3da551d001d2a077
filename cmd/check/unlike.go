package check

import (
	"fmt"
	"slices"
	"strings"
)

// An odd is a measurement that differs from most others of the same quantity.
type odd struct {
	measurement
	most string // the others' value
	who  string // the others: "the other 7 hosts", "host a"
}

// said is the value of a measurement in words.
func (m *measurement) said() string {
	if m.Text != "" || m.Unit == "" && m.Value == 0 {
		return m.Text
	}
	return spell(m.Value, m.Unit)
}

// unlike are the measurements, of one a host, that differ from the value of more than half. If there is no
// such value, as with two hosts, all that differ from the first.
func unlike(list []measurement) []odd {
	count := map[string]int{}
	for i := range list {
		count[key(&list[i])]++
	}
	if len(count) < 2 {
		return nil
	}
	first := list[0]
	most, who := key(&first), first.Subject.component.Host
	who = "host " + who
	for i := range list {
		if k := key(&list[i]); 2*count[k] > len(list) {
			most, first = k, list[i]
			who = fmt.Sprintf("%d of %d hosts", count[k], len(list))
		}
	}
	var found []odd
	for _, m := range list {
		if key(&m) != most {
			found = append(found, odd{m, first.said(), who})
		}
	}
	return found
}

func key(m *measurement) string { return fmt.Sprint(m.Text, "|", m.Value) }

// byPart groups measurements by the part of their subjects.
func byPart(list []measurement) [][]measurement {
	at := map[string]int{}
	var groups [][]measurement
	for _, m := range list {
		i, ok := at[m.Subject.Part]
		if !ok {
			i = len(groups)
			at[m.Subject.Part] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// spell writes a value with its unit as people do.
func spell(v float64, unit string) string {
	if unit == "B" {
		return bytesOf(v)
	}
	if unit == "s" && v < 1 && v > -1 {
		if v < 1e-3 && v > -1e-3 {
			return figure(v*1e6) + " us"
		}
		return figure(v*1e3) + " ms"
	}
	return strings.TrimSpace(figure(v) + " " + unit)
}

// figure writes three digits, or all digits of a whole number.
func figure(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return digits(v)
}

// digits writes three digits, so that numbers in a table have one length.
func digits(v float64) string {
	switch a := max(v, -v); {
	case a >= 99.95 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	case a >= 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func bytesOf(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 && (v >= 10*1024 || float64(int64(v/1024))*1024 == v) {
		v /= 1024
		i++
	}
	return figure(v) + " " + units[i]
}

// hostOf finds the measurement of a host among a list.
func hostOf(list []measurement, host, part string) (measurement, bool) {
	i := slices.IndexFunc(list, func(m measurement) bool { return m.Subject == of(host, part) })
	if i < 0 {
		return measurement{}, false
	}
	return list[i], true
}
