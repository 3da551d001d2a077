package command

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// patience is how long a call of NCCL may wait while nothing moves: e.wait, or so much less that its sentence comes
// before the program's time is over.
func (e *emulation) patience() time.Duration {
	if e.limit > 0 {
		return min(e.wait, e.limit*3/4)
	}
	return e.wait
}

// hostPatience is how much longer the host may compute without a call of the driver.
const hostPatience = 10

// watch ends a run whose host waits or spins for ever: nothing moves, and it does not call the driver.
func (e *emulation) watch(ctx context.Context, file string, end context.CancelCauseFunc) {
	most := hostPatience * e.wait
	if most <= 0 {
		return
	}
	look := time.NewTicker(min(time.Second, most/hostPatience))
	defer look.Stop()
	before, changed := activity(file), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		switch now := activity(file); {
		// What uses no GPU yet may take its time, and who waits in the driver is the emulator's to find.
		case now != before || now.processes == 0 || now.begun != now.ended:
			before, changed = now, time.Now()
		case time.Since(changed) > most:
			end(fmt.Errorf("for %v the program has not called the driver and nothing has moved on its GPUs: its host waits for what "+
				"never comes, or computes for longer than -wait %v allows", most, e.wait))
			return
		}
	}
}

// An activeness changes while a program does something with its GPUs.
type activeness struct {
	processes           int
	moves, begun, ended uint64
}

// activity is what the processes of a program have counted until now: see cmd/libcuda/report.go.
func activity(file string) (a activeness) {
	number := func(name string, at int) uint64 {
		b, err := os.ReadFile(name)
		if err != nil || len(b) < 8*at+8 {
			return 0
		}
		return binary.NativeEndian.Uint64(b[8*at:])
	}
	a.moves = number(file+".moves", 0)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "counts*"))
	for _, name := range files {
		a.processes++
		a.begun += number(name, 1)
		a.ended += number(name, 2)
	}
	return a
}
