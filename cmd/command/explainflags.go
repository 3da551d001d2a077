package command

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

// explainFlags are the values of explain's flags.
type explainFlags struct {
	ranks, root, node   int
	size, typ, algo     string
	steps, device, plan string
	ordered, drawn      bool
	policy              string
	most, least         int // blocks
	gpus                ringo.GPUs
	row                 string
	mbps                int
	out, json           string // files
}

func (f *explainFlags) register(fs *flag.FlagSet) {
	fs.IntVar(&f.ranks, "np", 4, "")
	fs.IntVar(&f.root, "r", 0, "")
	fs.IntVar(&f.node, "node", 0, "")
	fs.IntVar(&f.mbps, "host-mbps", 0, "")
	fs.StringVar(&f.size, "s", "1M", "")
	fs.StringVar(&f.typ, "d", "float32", "")
	fs.StringVar(&f.algo, "algo", "", "")
	fs.StringVar(&f.steps, "steps", "auto", "")
	fs.StringVar(&f.device, "device", "host", "")
	fs.StringVar(&f.plan, "plan", "", "")
	fs.BoolVar(&f.ordered, "deterministic", false, "")
	fs.BoolVar(&f.drawn, "picture", false, "")
	fs.StringVar(&f.policy, "policy", "", "")
	fs.IntVar(&f.most, "max-blocks", 0, "")
	fs.IntVar(&f.least, "min-blocks", 0, "")
	fs.StringVar(&f.gpus.Name, "gpu", "", "")
	fs.StringVar(&f.gpus.Path, "path", "", "")
	fs.BoolVar(&f.gpus.Registered, "registered", false, "")
	fs.StringVar(&f.row, "row", "", "")
	fs.StringVar(&f.out, "o", "", "")
	fs.StringVar(&f.json, "json", "", "")
}

// question makes the question for the choice of the flags, where names are the arguments.
func (f *explainFlags) question(names []string) (question, error) {
	q, err := ask(names, f.ranks, f.root, f.node, f.typ, f.algo)
	if err != nil {
		return q, err
	}
	q.policy, q.most, q.least, q.mbps = f.policy, f.most, f.least, f.mbps
	if q.mbps == 0 && f.node > 0 {
		cfg, err := ringo.Config{}.FromEnv()
		if err != nil {
			return q, err
		}
		q.mbps = cfg.HostMbps
	}
	if f.ordered {
		q.order = "rank order"
	}
	if f.row != "" {
		row, err := bench.ParseSize(f.row)
		if err != nil {
			return q, cli.Usagef("-row: %v", err)
		}
		f.gpus.Row = int(row)
	}
	switch f.device {
	case "cuda", "emu":
		if q.gpus, q.plan = &f.gpus, f.plan; f.gpus.Name == "" && f.device == "emu" {
			f.gpus.Name = "Emulated GPU"
		}
		if known := values("explain", "path"); f.gpus.Path != "" && !slices.Contains(known, f.gpus.Path) {
			return q, cli.Unknown("path", f.gpus.Path, known)
		}
	case "host", "auto":
		if f.gpus != (ringo.GPUs{}) || f.plan != "" || f.policy != "" || f.most != 0 || f.least != 0 {
			return q, cli.Usagef("-gpu, -path, -registered, -row, -plan, -policy and numbers of blocks are for GPU memory: " +
				"give -device cuda")
		}
	default:
		return q, cli.Unknown("device", f.device, []string{"host", "cuda", "emu"})
	}
	return q, nil
}

// files refuses -o and -json if a file of that name cannot be written, or is no .svg.
func (f *explainFlags) files() error {
	if f.out != "" && strings.ToLower(filepath.Ext(f.out)) != ".svg" {
		return cli.Usagef("-o %s: the name must end in .svg", f.out)
	}
	for flag, name := range map[string]string{"-o": f.out, "-json": strings.TrimSuffix(f.json, "-")} {
		if err := cli.Writable(flag, name); err != nil {
			return err
		}
	}
	return nil
}
