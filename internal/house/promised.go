package main

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// checkPromises compares the packages that other modules can import with the promised ones: each says in its comment
// which it is.
func checkPromises(m *module, promised []string) (errs []error) {
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		folder, _ := m.folder(p)
		if len(m.files[p]) == 0 || m.packages[p].Name() == "main" || slices.Contains(strings.Split(folder, "/"), "internal") {
			continue
		}
		doc := ""
		for _, f := range m.files[p] {
			doc += f.Doc.Text()
		}
		says := strings.Contains(strings.Join(strings.Fields(doc), " "), notPromised)
		switch is := slices.Contains(promised, folder); {
		case is && says:
			errs = append(errs, fmt.Errorf("README.md promises %s, and its package comment does not", folder))
		case !is && !says:
			errs = append(errs, fmt.Errorf("%s: its package comment does not say that %s, and README.md does not list it",
				folder, notPromised))
		}
	}
	return errs
}

// checkAliases checks that the comment of every alias in the module's own package, of a type of
// this module, says where the fields and methods are: "go doc" prints the alias alone.
func checkAliases(m *module) (errs []error) {
	for _, f := range m.files[m.path] {
		folders := map[string]string{}
		for _, spec := range f.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			folders[path.Base(p)], _ = m.folder(p)
		}
		for _, d := range f.Decls {
			g, _ := d.(*ast.GenDecl)
			if g == nil {
				continue
			}
			for _, spec := range g.Specs {
				t, _ := spec.(*ast.TypeSpec)
				if t == nil || !t.Assign.IsValid() || !t.Name.IsExported() {
					continue
				}
				of, ok := t.Type.(*ast.SelectorExpr)
				if !ok || m.pkg(folders[fmt.Sprint(of.X)]) == nil {
					continue
				}
				want := fmt.Sprintf("go doc %s/%s.%s", m.name(), folders[fmt.Sprint(of.X)], of.Sel.Name)
				if !strings.Contains(t.Doc.Text()+g.Doc.Text(), want+"\n") {
					errs = append(errs, fmt.Errorf("the comment of %s does not lead to its fields and methods: %s", t.Name.Name,
						want))
				}
			}
		}
	}
	return errs
}
