package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// notPromised ends the first paragraph, or is a paragraph, of a package that others can import
// and that README does not list.
const notPromised = "nothing here is promised to other modules"

var row = regexp.MustCompile("(?m)^\\| `([a-z/ ]+)` ")

// promisedIn are the folders of the packages in the table under "## Packages" of README.md: the
// promised ones, in the order in which a user meets them.
func promisedIn(m *module) (folders []string, err error) {
	text, err := os.ReadFile(filepath.Join(m.root, "README.md"))
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		folders = append(folders, match[1])
	}
	if len(folders) == 0 || folders[0] != m.name() {
		return nil, fmt.Errorf("README.md: the table under \"## Packages\" does not begin with `%s`", m.name())
	}
	folders[0] = "."
	return folders, nil
}

// importable are the packages that other modules can import: folder and package comment.
func importable(m *module) map[string]string {
	docs := map[string]string{}
	for _, s := range m.files {
		f := s.folder()
		if s.apart || strings.HasSuffix(s.name, "_test.go") || s.tree.Name.Name == "main" ||
			slices.Contains(strings.Split(f, "/"), "internal") {
			continue
		}
		docs[f] += s.tree.Doc.Text()
	}
	return docs
}

// checkPromises compares the list with the packages that there are: a promised one has to be
// importable, and another one has to say that it is not promised.
func checkPromises(m *module, promised []string) (errs []error) {
	docs := importable(m)
	for _, folder := range promised {
		doc, ok := docs[folder]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("README.md promises %s, and there is no such package", folder))
		case strings.Contains(strings.Join(strings.Fields(doc), " "), notPromised):
			errs = append(errs, fmt.Errorf("README.md promises %s, and its package comment does not", folder))
		}
	}
	for folder, doc := range docs {
		if !slices.Contains(promised, folder) && !strings.Contains(strings.Join(strings.Fields(doc), " "), notPromised) {
			errs = append(errs, fmt.Errorf("%s: its package comment does not say that %s, and README.md does not list it",
				folder, notPromised))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// checkAliases checks that the comment of every alias in the module's own package, of a type of
// this module, says where the fields and methods are: "go doc" prints the alias alone.
func checkAliases(m *module) (errs []error) {
	for _, s := range m.files {
		if s.folder() != "." || s.isTest() {
			continue
		}
		folders := map[string]string{}
		for _, p := range s.imports() {
			if folder, ok := m.inside(p); ok {
				folders[path.Base(p)] = folder
			}
		}
		for _, d := range s.tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				t := spec.(*ast.TypeSpec)
				of, ok := t.Type.(*ast.SelectorExpr)
				if !ok || !t.Assign.IsValid() || !t.Name.IsExported() {
					continue
				}
				folder, ours := folders[fmt.Sprint(of.X)]
				want := fmt.Sprintf("go doc %s/%s.%s", m.name(), folder, of.Sel.Name)
				if doc := t.Doc.Text() + g.Doc.Text(); ours && !strings.Contains(doc, want+"\n") {
					errs = append(errs, fmt.Errorf("%s: the comment of %s does not lead to its fields and methods: %s", s.name,
						t.Name.Name, want))
				}
			}
		}
	}
	return errs
}

// systemOnly has an error for each exported name of a promised package that not every system
// has: it is declared neither in a file for all systems nor in two files.
func systemOnly(m *module, promised []string) (errs []error) {
	times := map[string]int{}
	for _, s := range m.files {
		if s.isTest() || s.apart || !slices.Contains(promised, s.folder()) {
			continue
		}
		weight := 1
		if s.anywhere {
			weight = 2
		}
		for _, name := range exportedIn(s.tree) {
			times[s.folder()+": "+name] += weight
		}
	}
	for name, n := range times {
		if n < 2 {
			errs = append(errs, fmt.Errorf("%s is not on every system", name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// exportedIn are the exported names that a file declares, methods with their type.
func exportedIn(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				names = append(names, nameOf(d))
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !ast.IsExported(n) })
}
