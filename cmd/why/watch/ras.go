package watch

import (
	"context"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/ras"
)

// RAS is a Source that asks the RAS at an address, HOST or HOST:PORT. Ranks of this library answer as RAS too.
func RAS(address string) Source {
	var before []ras.Report
	return Source{"RAS at " + address, func(ctx context.Context) (Look, error) {
		now, err := ras.Ask(ctx, address)
		if err != nil {
			before = nil
			return Look{}, err
		}
		look := Look{Behind: hang.Judge(now.Job(address)).Culprits}
		both := append(before, *now)
		look.Answer = ras.Judge(now.Job(address), both)
		look.Moves = len(both) > 1 && ras.Moved(&both[0], &both[1])
		before = []ras.Report{*now}
		return look, nil
	}}
}
