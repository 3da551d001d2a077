//go:build linux && (amd64 || arm64)

package ctest

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ifChanged builds a file unless its sources are as they were when it was built last: packages of Go ("./cmd/ringo", a
// .go file) with all that they import, and patterns of other files.
func ifChanged(t testing.TB, out string, sources []string, build func() error) error {
	var patterns, packages []string
	for _, s := range sources {
		if strings.HasPrefix(s, "./") || strings.HasSuffix(s, ".go") {
			packages = append(packages, s)
		} else {
			patterns = append(patterns, s)
		}
	}
	files, err := imported(t, packages)
	if err != nil {
		return err
	}
	others, err := match(t, patterns)
	if err != nil {
		return err
	}
	stamp := sha256.New()
	fmt.Fprintln(stamp, runtime.Version())
	for _, file := range append(files, others...) {
		info, err := os.Stat(file) // go test keeps a result until a file changes that the test has looked at
		if err != nil {
			return err
		}
		fmt.Fprintln(stamp, file, info.Size(), info.ModTime().UnixNano())
	}
	return unless(out, stamp, build)
}

// unless builds a file unless it was built last with the same stamp.
func unless(out string, stamp hash.Hash, build func() error) error {
	now, last := fmt.Sprintf("%x", stamp.Sum(nil)), out+".built"
	_, err := os.Stat(out)
	if before, errLast := os.ReadFile(last); err == nil && errLast == nil && string(before) == now {
		return nil
	}
	os.Remove(last)
	if err := build(); err != nil {
		return err
	}
	return os.WriteFile(last, []byte(now), 0o600)
}

// imported are the source files of packages of Go and of all that they import outside of Go's library, and their
// folders, where another file may appear.
func imported(t testing.TB, packages []string) (files []string, err error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{$d}}
{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{range .CgoFiles}}{{$d}}/{{.}}
{{end}}{{range .CFiles}}{{$d}}/{{.}}
{{end}}{{range .HFiles}}{{$d}}/{{.}}
{{end}}{{range .SFiles}}{{$d}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}
{{end}}{{end}}`}, packages...)...)
	cmd.Dir = Root(t)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &complaints)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), nil
}

// match gives the files of patterns, which are relative to the repository.
func match(t testing.TB, patterns []string) (files []string, err error) {
	for _, pattern := range patterns {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(Root(t), pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("no file is %s: %w", pattern, err)
		}
		files = append(files, found...)
	}
	return files, nil
}

// ifOther builds out unless it was built of a source and headers with the same content, and by the same words.
func ifOther(t testing.TB, out, source string, headers, words []string, build func(out string) error) error {
	files, err := match(t, headers)
	if err != nil {
		return err
	}
	stamp := sha256.New()
	fmt.Fprintf(stamp, "%q\n", words)
	for _, file := range append(files, source) {
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(stamp, "%s %q\n", filepath.Base(file), text)
	}
	return unless(out, stamp, func() error {
		if err := build(out + ".new"); err != nil {
			return err
		}
		return os.Rename(out+".new", out)
	})
}
