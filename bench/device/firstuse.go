package device

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/trusted"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/device"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/mem"
)

// A FirstUse is how long the first use of a kernel takes in a process that has
// a context: to load and compile its module, and to run it once.
type FirstUse struct {
	Type  string  `json:"type"`
	Op    string  `json:"op"`
	Cache string  `json:"cache"` // the driver's, of compiled code: "cold", "warm"
	Load  float64 `json:"load_ms"`
	Run   float64 `json:"run_ms"` // the first launch, until it is done
	Total float64 `json:"total_ms"`
}

// MeasureFirstUse measures in this process.
func MeasureFirstUse(d cuda.Driver, ordinal int, t kernels.DataType, op kernels.RedOp) (FirstUse, error) {
	u := FirstUse{Type: t.String(), Op: op.String()}
	reducer, err := kernels.NewReducer(t, op, 8)
	if err != nil {
		return u, err
	}
	err = session(d, ordinal, func(c cuda.Context) error {
		p, err := d.MemAlloc(4096)
		if err != nil {
			return err
		}
		defer d.MemFree(p)
		if err := d.MemsetD8(p, 0, 4096); err != nil {
			return err
		}
		combiner, err := device.New(d, c)
		if err != nil {
			return err
		}
		defer combiner.Close()
		start := time.Now()
		k, err := combiner.Kernel(reducer)
		if err != nil {
			return err
		}
		loaded := time.Now()
		r := mem.Device(ordinal, p, 4096)
		if err := k.Launch(cuda.StreamLegacy, &device.Args{Dst: r, Srcs: []mem.Region{r, r}, Contributions: 3,
			Finish: true}); err != nil {
			return err
		}
		if err := d.StreamSynchronize(cuda.StreamLegacy); err != nil {
			return err
		}
		u.Load = milliseconds(loaded.Sub(start))
		u.Run = milliseconds(time.Since(loaded))
		u.Total = u.Load + u.Run
		return nil
	})
	return u, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// firstUses starts processes that measure the first use of each combine: once with
// the driver's cache in an empty folder, and once more in the same folder.
func firstUses(ctx context.Context, cfg Config, _ cuda.Context, r *Report, t *table) error {
	if cfg.FirstUse == nil {
		return nil
	}
	list, names := cfg.defined()
	for i, reducer := range list {
		folder, err := trusted.MkdirTemp("", "ringo-jit-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		for _, cache := range []string{"cold", "warm"} {
			u, err := childFirstUse(ctx, cfg.FirstUse, reducer.Type().String(), names[i], folder)
			if err != nil {
				return err
			}
			u.Cache = cache
			r.First = append(r.First, u)
		}
	}
	t.firstUses(r.First)
	return nil
}

func childFirstUse(ctx context.Context, command []string, typ, op, folder string) (u FirstUse, err error) {
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], typ, op)...)
	cmd.Env = append(os.Environ(), "CUDA_CACHE_PATH="+folder, "CUDA_CACHE_DISABLE=0")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return u, fmt.Errorf("measure the first use of %s of %s: %w: %s", op, typ, err, complaints.Bytes())
	}
	if err := json.Unmarshal(out, &u); err != nil {
		return u, fmt.Errorf("measure the first use of %s of %s: %w", op, typ, err)
	}
	return u, nil
}

// Texts is how much PTX there is.
type Texts struct {
	Modules  int `json:"modules"`
	Bytes    int `json:"bytes"`    // of all texts
	Largest  int `json:"largest"`  // bytes of the largest text
	Embedded int `json:"embedded"` // bytes of all in the program, compressed
}

func texts(_ context.Context, _ Config, _ cuda.Context, r *Report, t *table) error {
	sizes, err := ptx.Sizes()
	if err != nil {
		return err
	}
	for _, n := range sizes {
		r.PTX.Modules++
		r.PTX.Bytes += n
		r.PTX.Largest = max(r.PTX.Largest, n)
	}
	r.PTX.Embedded = ptx.Embedded()
	t.texts(&r.PTX)
	return nil
}
