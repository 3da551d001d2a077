package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/internal/given"
)

// A Member is the process of one rank of a communicator.
type Member struct {
	Host   string
	Pid    int
	Number int // its rank in Record.Origin, -1 if it has none
}

// Members are the processes of a communicator, by rank. As JSON they are a line for each host, "rank:pid:number ...",
// so that each of thousands of ranks can write all.
type Members []Member

// MarshalJSON is for encoding/json.
func (m Members) MarshalJSON() ([]byte, error) {
	lines := map[string]string{}
	words := map[string][]string{}
	for r, x := range m {
		words[x.Host] = append(words[x.Host], fmt.Sprintf("%d:%d:%d", r, x.Pid, x.Number))
	}
	for host, w := range words {
		lines[host] = strings.Join(w, " ")
	}
	return json.Marshal(lines)
}

// UnmarshalJSON is for encoding/json. What names a rank twice, or leaves one out, is no list of members: it is empty.
func (m *Members) UnmarshalJSON(b []byte) error {
	var lines map[string]string
	if err := json.Unmarshal(b, &lines); err != nil {
		return err
	}
	*m = nil
	of := map[int]Member{}
	for _, host := range slices.Sorted(maps.Keys(lines)) {
		for word := range strings.FieldsSeq(lines[host]) {
			var n [3]int
			parts := strings.Split(word, ":")
			for i := range n {
				v, err := strconv.Atoi(parts[min(i, len(parts)-1)])
				if err != nil || v < -1 {
					return nil
				}
				n[i] = v
			}
			if _, twice := of[n[0]]; len(parts) != len(n) || n[0] < 0 || n[0] >= maxSize || twice {
				return nil
			}
			of[n[0]] = Member{given.Printable(host), max(n[1], 0), n[2]}
		}
	}
	all := make(Members, len(of))
	for r, x := range of {
		if r >= len(all) {
			return nil
		}
		all[r] = x
	}
	*m = all
	return nil
}
