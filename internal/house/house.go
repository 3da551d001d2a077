// Command house prints the plan of this module, the house, and fails where a number is larger
// than it may be. It is for whoever changes the module, and for CI:
//
//	go run ./internal/house             the plan, in a second or two
//	go run ./internal/house -rewrite    api.txt anew, after a look at the difference
//	go run ./internal/house -walk       the files that one AllReduce executes, by coverage
//	go run ./internal/house -typecheck linux/386 linux/riscv64    whether types are right on other systems
//	go run ./internal/house -typecheck -test windows/amd64        and those of tests
//
// # Rooms and arrows
//
// Rooms are the folders at the top, the packages of core, and the files of package ringo. An
// arrow goes from a room to another that it imports; among the files of package ringo, to another
// file whose names it uses. With the rooms in order from the ground to the roof arrows go down,
// except where rooms need each other in a circle. In the best order the fewest arrows go back up;
// each of these is printed. Tests and packages for tests are in no room.
//
// # What is promised
//
// The packages in the table under "## Packages" of README.md are promised to other modules; every
// other package that can be imported says in its package comment that it is not. api.txt lists
// the exported names of the promised packages, and the fields and methods of other types that
// these names lead to. Whoever rewrites it reads the difference.
//
// # The walks
//
// host.txt and gpu.txt are the files that an AllReduce passes. The plan checks that each function
// there is called by the one above it; -walk checks that no file is missing, by the coverage of
// a warm call of 4 ranks.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The most that each number may be.
const (
	mostFolders  = 20
	mostEntries  = 65 // at the top
	mostUp       = 5  // arrows that go back up
	mostPromised = 34
	mostNames    = 173 // of package ringo, fields left out
	mostFiles    = 16  // of package ringo
)

func main() {
	rewrite := flag.Bool("rewrite", false, "write api.txt")
	walk := flag.Bool("walk", false, "execute an AllReduce, and compare its files with the walks")
	typecheck := flag.Bool("typecheck", false, "check the types of the module for the systems named")
	tests := flag.Bool("test", false, "with -typecheck, those of tests too")
	flag.Parse()
	h := &house{root: ".", walks: walks, rewrite: *rewrite}
	look := h.look
	switch {
	case *typecheck:
		look = func() error {
			text, err := systems(h.root, flag.Args(), *tests)
			h.text.WriteString(text)
			return err
		}
	case *walk:
		look = h.walk
	}
	if !*typecheck && flag.NArg() > 0 {
		h.root = flag.Arg(0)
	}
	if err := look(); err != nil {
		h.errs = append(h.errs, err)
	}
	fmt.Print(h.text.String())
	for _, err := range h.errs {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	if len(h.errs) > 0 {
		os.Exit(1)
	}
}

// A house is the module that is looked at, with the text to print and the faults that were found.
type house struct {
	root    string
	walks   []walk
	rewrite bool

	text strings.Builder
	errs []error
}

func (h *house) say(format string, args ...any) { fmt.Fprintf(&h.text, format+"\n", args...) }

// number prints a number beside the most that it may be, and notes a fault if it is larger.
func (h *house) number(name string, is, most int) {
	h.say("%6d of %-6d%s", is, most, name)
	if is > most {
		h.errs = append(h.errs, fmt.Errorf("%s: %d, want %d at most", name, is, most))
	}
}

// look goes through the house and notes faults in errs. An error means that it could not go on.
func (h *house) look() error {
	m, err := readModule(h.root)
	if err != nil {
		return err
	}
	promised, err := promisedIn(m)
	if err != nil {
		return err
	}
	h.errs = append(h.errs, checkPromises(m, promised)...)
	h.errs = append(h.errs, checkAliases(m)...)
	h.errs = append(h.errs, systemOnly(m, promised)...)
	x, err := newExporter(m, promised)
	if err != nil {
		return err
	}
	lines, names, err := newAPI(x, promised)
	if err != nil {
		return err
	}
	within, err := x.usesWithin()
	if err != nil {
		return err
	}
	if err := h.top(m); err != nil {
		return err
	}
	p := newPlan(m, within)
	back, floors := p.up()
	h.number(fmt.Sprintf("arrows back up, of %d between %d rooms on %d floors", p.arrows(), len(p.rooms), floors),
		len(back), mostUp)
	for _, arrow := range back {
		h.say("%*s%s", 18, "", arrow)
	}
	all := 0
	for _, n := range names {
		all += n
	}
	h.number("promised packages", len(promised), mostPromised)
	h.number(fmt.Sprintf("names of package %s, of %d that are promised", m.name(), all), names["."], mostNames)
	if err := h.compare(lines); err != nil {
		return err
	}
	h.sizes(m)
	if err := h.wide(m); err != nil {
		return err
	}
	for _, w := range h.walks {
		files, wrong := follow(h.root, w.lines)
		h.say("%d files carry an AllReduce on %s, and %d answer or hold: %s", len(files), w.on, len(w.files())-len(files),
			strings.Join(files, " "))
		h.errs = append(h.errs, wrong...)
	}
	return nil
}

// walk executes the walks.
func (h *house) walk() error {
	text, err := executed(h.root, h.walks)
	h.text.WriteString(text)
	return err
}

// top counts what ls shows: names that do not begin with a dot, build left out.
func (h *house) top(m *module) error {
	entries, err := os.ReadDir(h.root)
	if err != nil {
		return err
	}
	folders, shown, files := 0, 0, 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "build" {
			continue
		}
		shown++
		if e.IsDir() {
			folders++
		}
	}
	for _, s := range m.files {
		if s.folder() == "." && !s.isTest() {
			files++
		}
	}
	h.number("folders at the top", folders, mostFolders)
	h.number("entries at the top", shown, mostEntries)
	h.number("files of package "+m.name(), files, mostFiles)
	return nil
}

// compare compares the lines of the api with api.txt, or with -rewrite writes api.txt.
func (h *house) compare(lines []string) error {
	file := filepath.Join(h.root, "internal", "house", "api.txt")
	text := strings.Join(lines, "\n") + "\n"
	if h.rewrite {
		return os.WriteFile(file, []byte(text), 0o644)
	}
	was, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, c := range changes(strings.Split(string(was), "\n"), strings.Split(text, "\n")) {
		h.errs = append(h.errs,
			fmt.Errorf("promised names have changed: %s (if that is meant: go run ./internal/house -rewrite)", c))
	}
	return nil
}

// sizes prints the lines by kind and the longest functions.
func (h *house) sizes(m *module) {
	n := linesOf(m)
	h.say("lines of Go: product %d, emulator %d, tools %d, tests %d; generated %d", n["product"], n["emulator"],
		n["tools"], n["tests"], n["generated"])
	list := longest(m)
	h.say("the ten longest functions, and those above %d lines or a cyclomatic number of %d:", manyLines, manyCycles)
	for _, f := range list {
		h.say("%6d lines, %2d  %s", f.lines, f.cycles, f.name)
	}
}
