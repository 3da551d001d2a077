package check

import (
	"fmt"
	"os"
	"testing"
)

func TestDbg(t *testing.T) {
	for _, c := range append(labFaults, labHealthy...) {
		if c.name == os.Getenv("DBG") {
			r, _ := c.simulate(t, 1)
			for _, m := range r.Measurements {
				if m.Stage == "network" {
					fmt.Println(m.Subject, m.Quantity, m.Value, m.Unit, m.Text)
				}
			}
			for _, f := range r.Findings {
				fmt.Println(f.Severity, f.Code, f)
			}
		}
	}
}
