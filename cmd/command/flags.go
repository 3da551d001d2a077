package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
)

// flags is an empty set of flags for a command, whose mistakes are errors.
func flags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ContinueOnError) }

// mostRanks is the most ranks of a collective on paper.
const mostRanks = 1_000_000

// paperRanks defines the flags that explain and sim have in common: -np, -r and -node, which means hosts.
func paperRanks(fs *flag.FlagSet, ranks, root, node *int, hosts string) {
	cli.Int(fs, ranks, 1, mostRanks, fmt.Sprintf("at least 1, and at most %d ranks", mostRanks),
		fmt.Sprintf("np `N` ranks (default %d)", *ranks))
	cli.Int(fs, root, 0, mostRanks, "a rank", "r `ROOT` root of broadcast, reduce, gather, scatter (default 0)")
	cli.Int(fs, node, 0, mostRanks, fmt.Sprintf("0 to %d ranks of a host, and 0 for all", mostRanks), "node `N` "+hosts)
}

// sizeFlag defines a flag for a number of bytes.
func sizeFlag(fs *flag.FlagSet, p *int64, name string) {
	cli.Var(fs, func(text string) (err error) {
		*p, err = bench.ParseSize(text)
		return err
	}, func() string { return bench.FormatSize(*p) }, name)
}

// sizesFlag defines a flag for several numbers of bytes.
func sizesFlag(fs *flag.FlagSet, p *[]int64, name string) {
	cli.List(fs, p, bench.ParseSize, bench.FormatSize, name)
}

// typeFlag defines a flag for an element type.
func typeFlag(fs *flag.FlagSet, p *ringo.DataType, name string) {
	cli.Var(fs, func(text string) (err error) {
		*p, err = parseType(text)
		return err
	}, func() string { return p.String() }, name)
}

// parseType is the element type of a name. The error suggests a similar name among the types and others, the other
// words that may stand there.
func parseType(name string, others ...string) (kernels.DataType, error) {
	t, err := kernels.ParseType(name)
	if err == nil {
		return t, nil
	}
	var known []string
	for _, t := range kernels.Types() {
		known = append(known, t.String())
	}
	return t, cli.Unknown("type", name, append(known, others...))
}

// algoFlag defines a flag for an algorithm; "" and auto are the one that would be chosen.
func algoFlag(fs *flag.FlagSet, p *string, name string) {
	cli.Word(fs, p, "algorithm", ringo.Algorithms(), name)
}

// kindFlag defines a flag for a kind of emulated GPUs.
func kindFlag(fs *flag.FlagSet, p *string, name string) {
	cli.Var(fs, func(text string) error {
		_, err := cudaemu.Kind(text)
		*p = text
		return err
	}, func() string { return *p }, name)
}

// mostGPUs is the most emulated GPUs of a program.
const mostGPUs = 64

// gpusFlag defines a flag for a number of emulated GPUs.
func gpusFlag(fs *flag.FlagSet, p *int, least int, name string) {
	cli.Int(fs, p, least, mostGPUs, fmt.Sprintf("%d to %d GPUs", least, mostGPUs), name)
}

// notAuto is a word, and "" for auto.
func notAuto(word string) string {
	if word == "auto" {
		return ""
	}
	return word
}

// gpuNamed is the name that a driver gives to GPUs of a kind, or a name that a driver might give or a plan has.
func gpuNamed(name, plan string) (string, error) {
	kind, err := cudaemu.Kind(name)
	if err == nil {
		return kind.Name, nil
	}
	known := []string{"NVIDIA ", "Tesla ", "Quadro ", "GeForce ", "Emulated GPU"}
	if slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(name, k) }) ||
		name != "" && strings.Contains(plan, name) {
		return name, nil
	}
	return "", cli.Usagef("-gpu: %v, and names that nvidia-smi has, such as \"NVIDIA H200\"", err)
}

// durationFlag defines a flag for a time of at least least.
func durationFlag(fs *flag.FlagSet, d, least time.Duration, name string) *time.Duration {
	cli.Duration(fs, &d, least, name)
	return &d
}

// pageAndJSON checks a page to be written, beside JSON on standard output.
func pageAndJSON(page string, asJSON bool) error {
	outputs := []cli.Output{{Flag: "-html", File: page, Ends: []string{".html", ".htm"}}}
	if asJSON {
		outputs = append(outputs, cli.Output{Flag: "-json", File: "-"})
	}
	_, err := cli.Outputs(nil, outputs...)
	return err
}
