// Command tally reads what go test -json has printed, and says what failed, which tests were skipped without leave, the
// slowest packages, and how many test binaries there are:
//
//	go test -json ./... >tests.json; go run ./internal/test/tally -skips scripts/bare-skips -kind user tests.json
//
// A line of the file of skips is a kind of machine (or "any"), a package, a test, and words of the reason, with * for
// the rest of a name. A test that is skipped for what the tier leaves to the full one needs no line.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

const (
	module   = "github.com/ringo-go/ringo"
	emulator = module + "/internal/emu/cudaemu"
)

// tiers are the reasons of package tier, which are no fault of a machine.
var tiers = []string{"runs with RINGO_TEST=full", "RINGO_TEST=full runs it"}

func main() {
	skips := flag.String("skips", "", "the `file` of skips that may be")
	kind := flag.String("kind", "", "the kind of `machine` in that file")
	flag.Parse()
	if err := tally(flag.Arg(0), *skips, *kind); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

func tally(file, skips, kind string) error {
	allowed, err := readAllowed(skips, kind)
	if err != nil {
		return err
	}
	r, err := read(file)
	if err != nil {
		return err
	}
	failed := r.print(allowed)
	if err := printBinaries(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d failures and skips without leave", failed)
	}
	return nil
}

// An event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

// A result is how a test ended, or a package where the test is "".
type result struct {
	pkg, test string
	action    string
	seconds   float64
	output    strings.Builder
}

type results struct {
	ended  []*result
	builds map[string]*strings.Builder // what the compiler said, by package
}

// read returns how the tests of a file of go test -json ended.
func read(file string) (*results, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &results{builds: map[string]*strings.Builder{}}
	running := map[[2]string]*result{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: no line of go test -json: %q", file, lines.Text())
		}
		if strings.HasPrefix(e.Action, "build-") {
			if r.builds[e.ImportPath] == nil {
				r.builds[e.ImportPath] = &strings.Builder{}
			}
			r.builds[e.ImportPath].WriteString(e.Output)
			continue
		}
		key := [2]string{e.Package, e.Test}
		t := running[key]
		if t == nil {
			t = &result{pkg: strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/"), test: e.Test}
			running[key] = t
		}
		t.output.WriteString(e.Output)
		switch e.Action {
		case "pass", "fail", "skip":
			t.action, t.seconds = e.Action, e.Elapsed
			if b := r.builds[e.FailedBuild]; b != nil {
				t.output.WriteString(b.String())
			}
			r.ended = append(r.ended, t)
			delete(running, key)
		}
	}
	for key := range running {
		return nil, fmt.Errorf("%s %s has not ended", key[0], key[1])
	}
	if len(r.ended) == 0 {
		return nil, fmt.Errorf("%s has no test", file)
	}
	return r, lines.Err()
}

// print prints what failed or was skipped without leave, and how many tests there were. It returns the number of the
// former.
func (r *results) print(allowed []skip) (failed int) {
	var packages []*result
	count := map[string]int{}
	for _, t := range r.ended {
		switch {
		case t.test == "" && t.action != "skip": // skip is of a package without tests
			packages = append(packages, t)
		case t.test != "":
			count[t.action]++
		}
		switch {
		case t.action == "fail":
			failed++
			fmt.Printf("FAILED %s %s\n%s", t.pkg, t.test, t.output.String())
		case t.action == "skip" && t.test != "" && !slices.ContainsFunc(allowed, t.may):
			failed++
			fmt.Printf("SKIPPED without leave: %s %s\n%s", t.pkg, t.test, t.output.String())
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped, in %d packages; the slowest, in seconds of wall time:\n",
		count["pass"], count["fail"], count["skip"], len(packages))
	slices.SortFunc(packages, func(a, b *result) int { return int(1000 * (b.seconds - a.seconds)) })
	for _, p := range packages[:min(10, len(packages))] {
		fmt.Printf("%7.1f  %s\n", p.seconds, path.Join("./", p.pkg))
	}
	return failed
}

// A skip is a line of the file of skips.
type skip struct{ pkg, test, reason string }

// may reports whether a skip gives a test leave.
func (t *result) may(s skip) bool {
	pkg, _ := path.Match(s.pkg, t.pkg)
	pkg = pkg || s.pkg == "*"
	name, _, _ := strings.Cut(t.test, "/")
	test, _ := path.Match(s.test, name)
	return pkg && test && strings.Contains(t.output.String(), s.reason)
}

// readAllowed returns the skips of a file that are for a kind of machine, and those of tiers.
func readAllowed(file, kind string) (allowed []skip, err error) {
	for _, reason := range tiers {
		allowed = append(allowed, skip{pkg: "*", test: "*", reason: reason})
	}
	if file == "" {
		return allowed, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" || words[0] != "any" && words[0] != kind {
			continue
		}
		if len(words) < 4 {
			return nil, fmt.Errorf("%s: %q: want a kind of machine, a package, a test and a reason", file, line)
		}
		pkg := words[1]
		if pkg == "." {
			pkg = ""
		}
		allowed = append(allowed, skip{pkg: pkg, test: words[2], reason: strings.Join(words[3:], " ")})
	}
	return allowed, nil
}

// printBinaries prints how many test binaries go test ./... links, and how many of them hold the emulator.
func printBinaries() error {
	out, err := exec.Command("go", "list", "-test", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	all, emulated := 0, 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if !strings.HasSuffix(words[0], ".test") {
			continue
		}
		all++
		if slices.Contains(words, emulator) {
			emulated++
		}
	}
	fmt.Printf("%d test binaries, %d of them with the emulator\n", all, emulated)
	return nil
}
