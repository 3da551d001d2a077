package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Play plays the transcripts of testdata to a machine, and compares its answers with those there. A line of a
// transcript is an event, or begins a machine ("== title"). Lines behind it that begin with a blank are the answer.
// Empty lines and "#" are for the reader. What start returns takes a line of the file that begins, and returns the
// lines of the answer. With rewrite the files are written anew.
func Play(t *testing.T, rewrite bool, start func(t *testing.T) (play func(line string) (answer string))) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			play := start(t)
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, " ") {
					continue
				}
				got.WriteString(line + "\n")
				if line != "" && !strings.HasPrefix(line, "#") {
					got.WriteString(play(line))
				}
			}
			if rewrite {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(text) {
				t.Errorf("%s: want\n%s\ngot\n%s", file, text, got.String())
			}
		})
	}
}
