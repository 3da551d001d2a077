package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mostWide is the most characters of a line of Go or of a document.
const mostWide = 120

// wide lists the lines that are longer than mostWide. Left out are generated files and raw strings of Go, tables,
// pictures, headings and listings of documents, and lines without a space to break at. Spaces that align count as one.
func (h *house) wide(m *module) error {
	for _, s := range m.files {
		if s.generated {
			continue
		}
		text, err := os.ReadFile(filepath.Join(h.root, filepath.FromSlash(s.name)))
		if err != nil {
			return err
		}
		h.tooWide(s.name, text, leftOut(text, s.isTest()))
	}
	return filepath.WalkDir(h.root, func(file string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(h.root, file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name() == "build" || d.Name() == "testdata" || d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil {
			h.tooWide(filepath.ToSlash(name), text, tablesAndListings(text))
		}
		return err
	})
}

// tooWide notes a file's lines that are too long, without the lines in but.
func (h *house) tooWide(name string, text []byte, but map[int]bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		line := aligned.ReplaceAllString(lines.Text(), "$1 ")
		if but[n] || utf8.RuneCountInString(line) <= mostWide || !strings.Contains(afterMark(line), " ") {
			continue
		}
		h.errs = append(h.errs, fmt.Errorf("%s:%d: more than %d characters", name, n, mostWide))
	}
}

// aligned are spaces within a line that align it with its neighbours.
var aligned = regexp.MustCompile(`(\S)  +`)

// afterMark is a line without its indentation, and without the mark of a comment or of a list's entry.
func afterMark(line string) string {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"// ", "- ", "[", "* "} {
		line = strings.TrimPrefix(line, mark)
	}
	return line
}

// leftOut are the lines of a Go file that may be longer: raw strings, directives, and in tests what an example prints
// and lines with a string of half a line.
func leftOut(text []byte, test bool) map[int]bool {
	out := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for printed := false; ; {
		pos, tok, lit := s.Scan()
		at := file.Position(pos)
		printed = tok == token.COMMENT && (printed || test && strings.Contains(strings.ToLower(lit), "output:"))
		switch {
		case tok == token.EOF:
			return out
		case printed, strings.HasPrefix(lit, "//go:"),
			tok == token.STRING && (lit[0] == '`' || test && len(lit) > mostWide/2):
			for i := range strings.Count(lit, "\n") + 1 {
				out[at.Line+i] = true
			}
		}
	}
}

// tablesAndListings are the lines of a document that may be longer: of listings, tables, pictures and headings.
func tablesAndListings(text []byte) map[int]bool {
	out, listing := map[int]bool{}, false
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		fence := strings.HasPrefix(line, "```")
		if fence {
			listing = !listing
		}
		out[i+1] = fence || listing || line != "" && strings.Contains("|<#!", line[:1])
	}
	return out
}
