// Command house checks what the tests of single packages cannot: which names are promised to other modules, that types
// are right on every system, the width of lines, and the walk of an AllReduce. It is for whoever changes the module,
// and for CI:
//
//	go run ./internal/house             promised names, lines and walks, in some seconds
//	go run ./internal/house -rewrite    api.txt anew, after a look at the difference
//	go run ./internal/house -walk       the files that one AllReduce executes, by coverage
//	go run ./internal/house -typecheck linux/386 linux/riscv64    whether types are right on other systems
//	go run ./internal/house -typecheck -test windows/amd64        and those of tests
//
// The packages in the table under "## Packages" of README.md are promised to other modules; every other package that
// can be imported says in its package comment that it is not. api.txt lists the exported names of the promised
// packages, and the fields and methods of other types that these names lead to: the same ones on every system.
//
// host.txt and gpu.txt are the files that an AllReduce passes. Each function there is called by the one above it; -walk
// checks that no file is missing, by the coverage of a warm call of 4 ranks.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	rewrite := flag.Bool("rewrite", false, "write api.txt")
	walk := flag.Bool("walk", false, "execute an AllReduce, and compare its files with the walks")
	typecheck := flag.Bool("typecheck", false, "check the types of the module for the systems named")
	tests := flag.Bool("test", false, "with -typecheck, those of tests too")
	flag.Parse()
	var err error
	switch {
	case *typecheck:
		err = systems(".", flag.Args(), *tests)
	case *walk:
		err = executed(".")
	default:
		err = look(".", *rewrite)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// look checks the module in a folder, or with rewrite writes its api.txt.
func look(root string, rewrite bool) error {
	m, err := check(root, "linux/amd64", false, false)
	if err != nil {
		return err
	}
	promised, err := promisedIn(m)
	if err != nil {
		return err
	}
	if rewrite {
		return m.writeAPI(promised)
	}
	errs := append(checkPromises(m, promised), checkAliases(m)...)
	errs = append(errs, m.compareAPI(promised), wide(root))
	for _, w := range walks {
		errs = append(errs, follow(root, w.lines))
	}
	return errors.Join(errs...)
}

// systems checks the types and the promised names of the module on each system, a GOOS/GOARCH.
func systems(root string, targets []string, tests bool) error {
	if len(targets) == 0 {
		return errors.New("-typecheck: want GOOS/GOARCH")
	}
	for _, target := range targets {
		m, err := check(root, target, tests, true)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		promised, err := promisedIn(m)
		if err != nil {
			return err
		}
		if err := m.compareAPI(promised); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		fmt.Printf("%s: %d packages\n", target, len(m.files))
	}
	return nil
}
