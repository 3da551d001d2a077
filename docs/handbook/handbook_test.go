// Package handbook_test makes what the handbook shows. A region of a chapter between
//
//	<!-- made: NAME ARGUMENTS --> and <!-- end -->
//
// is what the maker of that name gives, and a figure is what its maker draws. TestDocs
// compares; go test ./docs/handbook -update writes them.
package handbook_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write regions and figures anew instead of comparing with them")

// makers give the text of a region.
var makers = map[string]func(arguments []string) string{
	"code":   code,
	"output": output,
	"text":   text,
	"table":  table,
	"costs":  costs,
	"times":  times,
	"fit":    fit,
	"number": constant,
	"bus":    bus,
	"orders": orders,
}

var region = regexp.MustCompile(`(?s)<!-- made: ([^>]*?) -->(.*?)<!-- end -->`)

func TestDocs(t *testing.T) {
	for _, file := range chapters(t) {
		text := read(t, file)
		require.Equal(t, strings.Count(text, "<!-- made:"), len(region.FindAllString(text, -1)), "%s: a region has no end",
			file)
		made := region.ReplaceAllStringFunc(text, func(old string) string {
			m := region.FindStringSubmatch(old)
			words := strings.Fields(m[1])
			maker := makers[words[0]]
			require.NotNil(t, maker, "%s: nothing makes %q", file, words[0])
			body := maker(words[1:])
			if strings.Contains(body, "\n") {
				body = "\n" + body
			}
			return "<!-- made: " + m[1] + " -->" + body + "<!-- end -->"
		})
		compare(t, file, text, made)
	}
}

// Every figure is drawn by figures, and shown.
func TestFigures(t *testing.T) {
	shown := map[string]bool{}
	for _, file := range chapters(t) {
		for _, m := range regexp.MustCompile(`!\[([^\]]*)\]\(figures/([^)]*)\.svg\)`).FindAllStringSubmatch(read(t, file),
			-1) {
			require.NotEmpty(t, m[1], "%s: figure %s has no words for those who do not see it", file, m[2])
			require.Contains(t, figures, m[2], "%s: nothing draws it", file)
			shown[m[2]] = true
		}
	}
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		require.True(t, shown[name], "figure %s is shown nowhere", name)
		svg := figures[name]()
		bytes += len(svg)
		file := filepath.Join("figures", name+".svg")
		old, err := os.ReadFile(file)
		if *update && err != nil {
			require.NoError(t, os.MkdirAll("figures", 0o755))
			require.NoError(t, os.WriteFile(file, nil, 0o644))
		}
		compare(t, file, string(old), svg)
	}
	require.Less(t, bytes, 400_000, "all figures together")
	files, err := filepath.Glob("figures/*")
	require.NoError(t, err)
	require.Len(t, files, len(figures), "figures has files that nothing draws")
}

// Go code in a chapter comes out of a file that the compiler has seen.
func TestCodeIsCompiled(t *testing.T) {
	for _, file := range chapters(t) {
		require.NotContains(t, region.ReplaceAllString(read(t, file), ""), "```go\n", "%s: use a region made by code", file)
	}
}

// Links of all pages lead to files and headings that are there, and every chapter is in the index.
func TestLinks(t *testing.T) {
	index := read(t, "README.md")
	for _, file := range chapters(t) {
		require.True(t, file == "README.md" || strings.Contains(index, "("+file+")"), "%s is not in the index", file)
	}
	pages := 0
	for _, pattern := range []string{"*.md", "../*.md", "../../*.md", "../../bench/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			pages++
			for _, m := range regexp.MustCompile(`\]\(([^)#: ]*)(#[^) ]*)?\)`).FindAllStringSubmatch(read(t, file), -1) {
				to := file
				if m[1] != "" {
					to = filepath.Join(filepath.Dir(file), m[1])
				}
				_, err := os.Stat(to)
				require.NoError(t, err, "%s: link %s", file, m[0])
				if m[2] != "" {
					require.Contains(t, headings(read(t, to)), m[2], "%s: link %s", file, m[0])
				}
			}
		}
	}
	require.Greater(t, pages, 18)
}

// headings are the anchors that a page's headings have.
func headings(page string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, "#"+strings.ReplaceAll(words, " ", "-"))
	}
	return anchors
}

func chapters(t *testing.T) []string {
	files, err := fs.Glob(os.DirFS("."), "*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func read(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

func compare(t *testing.T, file, old, made string) {
	t.Helper()
	if *update {
		if old != made {
			require.NoError(t, os.WriteFile(file, []byte(made), 0o644))
		}
		return
	}
	is, was := strings.Split(made, "\n"), strings.Split(old, "\n")
	for i := range min(len(is), len(was)) {
		require.Equal(t, is[i], was[i],
			"%s:%d is not what the code says: go test ./docs/handbook -update, and read the difference", file, i+1)
	}
	require.Len(t, was, len(is),
		"%s is not as long as the code says: go test ./docs/handbook -update, and read the difference", file)
}

func fenced(kind, text string) string {
	return fmt.Sprintf("```%s\n%s\n```\n", kind, strings.TrimRight(text, "\n"))
}
