package choice

import (
	"fmt"
	"strings"
)

// A product is what Explain has to know of a GPU that need not be there.
type product struct {
	word       string // of the name that the driver gives it
	processors int
	threads    int // of a multiprocessor
	bulk       bool
}

// products are by NVIDIA's data sheets. Of two words in one name the first here counts.
var products = []product{
	{"H100 PCIe", 114, 2048, true},
	{"GH200", 132, 2048, true}, {"H200", 132, 2048, true}, {"H100", 132, 2048, true}, {"H800", 132, 2048, true},
	{"H20", 78, 2048, true},
	{"V100", 80, 2048, false}, {"T4", 40, 1024, false}, {"A100", 108, 2048, false}, {"A800", 108, 2048, false},
	{"A30", 56, 2048, false}, {"A40", 84, 1536, false}, {"A10", 72, 1536, false}, {"L40", 142, 1536, false},
	{"L4", 58, 1536, false},
}

// productOf finds the product of a name. Others are taken for an H200.
func productOf(name string) product {
	for _, p := range products {
		if strings.Contains(strings.ToLower(name), strings.ToLower(p.word)) {
			return p
		}
	}
	return productOf("H200")
}

// members are n ranks in blocks of local on a host (0: all on one), each with such a GPU of its own, on which nothing
// else runs.
func (p product) members(n, local int, wants Budget) []Member {
	all := make([]Member, n)
	for i := range all {
		host := 0
		if local > 0 {
			host = i / local
		}
		all[i] = Member{Host: fmt.Sprint(host), GPU: fmt.Sprint(i), Processors: p.processors, BulkCopies: p.bulk,
			Share: Share(Capacity(p.processors, p.threads), 0, 0), Wants: wants}
	}
	return all
}
