package check_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/check"
)

// An operator, or an agent on each node, in 15 lines.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	job, err := check.Join(ctx, check.JoinOptions{}) // by the launcher's variables, or this host alone
	if err != nil {
		fmt.Println("cordon everything:", err)
		return
	}
	defer job.Close()
	report, err := check.Run(ctx, job, check.Config{NoGPUs: true})
	if report != nil { // this is rank 0
		for _, f := range report.Findings {
			fmt.Println("cordon", f.Subject.Host, f.Code, f)
		}
		fmt.Println(len(report.Stages), "stages,", err)
	}
	// Output: 3 stages, <nil>
}
