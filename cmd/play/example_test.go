package play_test

import (
	"fmt"

	"github.com/ringo-go/ringo/cmd/play"
)

// A ring, and the same ring from which one step was dropped.
func Example() {
	q := play.Question{Collective: "allreduce", Algo: "ring", Ranks: 4, Bytes: 1 << 20, Net: "shm"}
	p, err := q.Answer()
	if err != nil {
		fmt.Println(err)
		return
	}
	last := p.Steps[2][3]
	fmt.Printf("%d turns; rank 2 step 3 at turn %d: %v holds %v after %d hops\n", p.Turns, last.Turn, last.Step,
		last.Value, last.Hops)

	q.Edits = []play.Edit{{Rank: 2, Step: 3, With: -1}}
	p, _ = q.Answer()
	fmt.Println(p.Err)
	// Output:
	// 7 turns; rank 2 step 3 at turn 3: from 1 ⊕ In[2] → Out[2] → 3 holds (2+(1+(0+3)))[2] after 3 hops
	// check all-reduce: rank 2 step 3 (from 1 → Out[1] → 3): receives (1+(0+3))[2] for Out[1]: chunks 2 and 1 of a block may differ in length
}
