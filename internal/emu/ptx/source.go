package ptx

import (
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
)

// A mark says which line of a source file, and which column, the text comes from, from one of its lines on.
type mark struct{ line, file, source, column int }

// location keeps .loc, which holds until the next one of the function.
func (p *parser) location() {
	line := p.tok.line
	p.advance()
	file, source, column := p.numberIn(line), p.numberIn(line), p.numberIn(line)
	p.skipRest(line)
	p.module.marks = append(p.module.marks, mark{line, file, source, column})
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
	at := m.mark(line)
	if m.files[at.file] == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", m.files[at.file], at.source)
}

// OnePlace reports whether a line of the text is known to come from one place of the source. Compilers say neither line
// nor column of what they have merged.
func (m *Module) OnePlace(line int) bool {
	at := m.mark(line)
	return at.source > 0 && at.column > 0
}

// mark is that of a line of the text, the zero mark if there is none.
func (m *Module) mark(line int) mark {
	i := sort.Search(len(m.marks), func(i int) bool { return m.marks[i].line > line }) - 1
	if i < 0 {
		return mark{}
	}
	return m.marks[i]
}
