package command

import (
	"encoding/json"
	"os"
	"slices"
)

// readNotes adds what libraries have to say to the program's author that is no finding, each sentence once. Their
// lines in the report's file have it beside calls of NCCL (cmd/libnccl/capi/env.go).
func (r *emulateReport) readNotes(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // read says so
	}
	lines := reportLines(text)
	for lines.Scan() {
		var l struct {
			Note string `json:"note"`
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Note != "" && !slices.Contains(r.Notes, l.Note) {
			r.Notes = append(r.Notes, l.Note)
		}
	}
}
