package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A pkg is a package of the product, as go list describes it.
type pkg struct {
	ImportPath, Dir           string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Path, Dir string }
}

// folder is the package's folder in the module.
func (p *pkg) folder() string {
	if p.ImportPath == p.Module.Path {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
}

// apart are folders that are no product: tests and their tools, generators and examples.
var apart = []string{
	"internal/test", "internal/house", "internal/typecheck", "transport/transporttest",
	"examples", "docs", "kernels/ptx/gen", "cmd/play/page/gen", "cmd/play/wasm",
}

// elsewhere are the folders of tests that a package has beside its own, or in their place. A mutant that the package's
// own tests let live goes through these, in order.
var elsewhere = map[string][]string{
	".":                 {"internal/test/e2e/host", "internal/test/e2e/gpu"},
	"bench/device":      {"bench"},
	"bench/meter":       {"bench"},
	"bench/tune":        {"bench", "cmd/command"},
	"cmd/check/nvml":    {"cmd/check"},
	"cmd/libcuda/cudac": {"cmd/libcuda"},
	"cmd/play/page":     {"cmd/play", "cmd/command"},
	"cmd/ringo":         {"cmd/command"},
	"cmd/why/flight":    {"cmd/why"},
	"cmd/why/hang":      {"cmd/why"},
	"cmd/why/inspector": {"cmd/why"},
	"cmd/why/ncclog":    {"cmd/why"},
	"cmd/why/printed":   {"cmd/why"},
	"cmd/why/ras":       {"cmd/why"},
	"cmd/why/stacks":    {"cmd/why"},
	"cmd/why/watch":     {"cmd/why"},
	"core/call":         {".", "internal/test/e2e/host"},
	"core/choice":       {".", "internal/test/e2e/host"},
	"core/gpucomm":      {"internal/test/e2e/gpu"},
	"core/gpupaths":     {"internal/test/e2e/paths"},
	"core/hostcomm":     {".", "internal/test/e2e/host"},
	"core/life":         {".", "internal/test/e2e/host"},
	"core/paths":        {".", "internal/test/e2e/procs"},
	"core/rankorder":    {"internal/test/e2e/host"},
	"core/request":      {".", "internal/test/e2e/host"},
	"engine":            {"internal/test/e2e/host"},
	"engine/grid":       {"internal/test/e2e/gpu"},
	"gpu":               {"internal/test/e2e/gpu"},
	"internal/cuda":     {"cmd/libcuda", "gpu", "internal/emu/cudaemu"},
	"internal/nccl":     {"bench"},
	"internal/relay":    {"ringotest"},

	"internal/emu/simt":    {"internal/emu/cudaemu"},
	"internal/emu/weakmem": {"internal/emu/simt", "internal/emu/cudaemu"},

	"kernels/device": {"internal/test/e2e/gpu"},
	"ring/hier":      {"core/choice"},
	"sched":          {"ring", "ring/hier"},
	"transport":      {"transport/inproc", "transport/socket"},
}

// product lists the packages that patterns name, ./... if none.
func product(ctx context.Context, patterns []string) ([]*pkg, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Module"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []*pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if !slices.ContainsFunc(apart,
			func(dir string) bool { return p.folder() == dir || strings.HasPrefix(p.folder(), dir+"/") }) {
			list = append(list, p)
		}
	}
}

// mutantsOf is one mutant for each line that can have one, in random order.
func mutantsOf(packages []*pkg, rng *rand.Rand) ([]*mutant, error) {
	var all []*mutant
	for _, p := range packages {
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			edits, err := mutate(file, src)
			if err != nil {
				return nil, err
			}
			for len(edits) > 0 {
				same := 1
				for same < len(edits) && edits[same].line == edits[0].line {
					same++
				}
				all = append(all, &mutant{pkg: p, file: file, src: src, edit: edits[rng.IntN(same)]})
				edits = edits[same:]
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// mutate is what can be done to a file, ordered by line: nothing for one that is generated.
func mutate(file string, src []byte) ([]edit, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(tree) {
		return nil, err
	}
	m := &mutator{src: src, fset: fset}
	ast.Inspect(tree, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			return false
		}
		m.visit(n)
		return true
	})
	slices.SortStableFunc(m.edits, func(a, b edit) int { return a.line - b.line })
	return m.edits, nil
}
