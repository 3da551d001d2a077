package main

import (
	"errors"
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

// wide has an error for each line that is longer than mostWide. Left out are generated files and raw strings of Go,
// tables, pictures, headings and listings of documents, and lines without a space to break at. Spaces that align count
// as one.
func wide(root string) error {
	var errs []error
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, file)
		ext := filepath.Ext(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name() == "build" || d.Name() == "testdata" || d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || ext != ".md" && ext != ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		leftOut := tablesAndListings
		if ext == ".go" {
			leftOut = rawStrings
		}
		but, n := map[int]bool(nil), 0
		for line := range strings.Lines(string(text)) {
			n++
			line = aligned.ReplaceAllString(strings.TrimSuffix(line, "\n"), "$1 ")
			if utf8.RuneCountInString(line) <= mostWide || !strings.Contains(afterMark(line), " ") {
				continue
			}
			if but == nil {
				but = leftOut(name, text)
			}
			if !but[n] && !but[0] {
				errs = append(errs, fmt.Errorf("%s:%d: more than %d characters", filepath.ToSlash(name), n, mostWide))
			}
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
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

// rawStrings are the lines of a Go file that may be longer: raw strings, directives, and in tests what an example
// prints and lines with a string of half a line. Line 0 stands for a whole file, which is generated.
func rawStrings(name string, text []byte) map[int]bool {
	out, test := map[int]bool{}, strings.HasSuffix(name, "_test.go") || strings.Contains(name, "internal/test/")
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
		case tok == token.COMMENT && generated.MatchString(lit):
			out[0] = true
		case printed, strings.HasPrefix(lit, "//go:"),
			tok == token.STRING && (lit[0] == '`' || test && len(lit) > mostWide/2):
			for i := range strings.Count(lit, "\n") + 1 {
				out[at.Line+i] = true
			}
		}
	}
}

var generated = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)

// tablesAndListings are the lines of a document that may be longer: of listings, tables, pictures and headings.
func tablesAndListings(_ string, text []byte) map[int]bool {
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
