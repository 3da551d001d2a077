package ptx

import (
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
)

// A mark says which line of a source file the text comes from, from one of its lines on.
type mark struct{ line, file, source int }

// location keeps .loc, which holds until the next one of the function.
func (p *parser) location() {
	line := p.tok.line
	p.advance()
	file, source := p.numberIn(line), p.numberIn(line)
	p.skipRest(line)
	p.module.marks = append(p.module.marks, mark{line, file, source})
}

// sourceFile keeps .file.
func (p *parser) sourceFile() {
	line := p.tok.line
	p.advance()
	n := p.numberIn(line)
	if t := p.tok; t.kind == stringToken && t.line == line {
		if p.module.files == nil {
			p.module.files = map[int]string{}
		}
		name, err := strconv.Unquote(t.text)
		if err != nil {
			name = strings.Trim(t.text, `"`)
		}
		p.module.files[n] = path.Base(name)
	}
	p.skipRest(line)
}

// numberIn takes a number if it is on the line.
func (p *parser) numberIn(line int) int {
	if p.tok.kind == endToken || p.tok.line != line {
		return 0
	}
	n, _ := strconv.Atoi(p.advance().text)
	return n
}

// Source is where a line of the text comes from, "run.cu:93"; "" if the text has no .loc
// for it.
func (m *Module) Source(line int) string {
	i := sort.Search(len(m.marks), func(i int) bool { return m.marks[i].line > line }) - 1
	if i < 0 || m.files[m.marks[i].file] == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", m.files[m.marks[i].file], m.marks[i].source)
}
