package rendezvous

import (
	"strconv"
	"strings"
	"time"
)

// Ranges writes ascending ranks as "0-2, 5".
func Ranges(ranks []int) string {
	var b strings.Builder
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > MaxText/4 {
			b.WriteString("…")
			break
		}
		b.WriteString(strconv.Itoa(ranks[i]))
		if j > i {
			sep := "-"
			if j == i+1 {
				sep = ", "
			}
			b.WriteString(sep + strconv.Itoa(ranks[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Spell writes a waiting time as people do: 60s, 1.5s, 200ms.
func Spell(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + "s"
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
