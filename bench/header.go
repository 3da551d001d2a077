package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
)

// A Header says when, where and by what a report was made: the machine, the program and its flags.
type Header struct {
	Schema  string    `json:"schema"`
	Date    time.Time `json:"date"`
	Host    string    `json:"host"`
	OS      string    `json:"os"`
	Arch    string    `json:"arch"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Go      string    `json:"go"`
	Version string    `json:"version"`
	Flags   []string  `json:"flags"`
}

// NewHeader is the Header of a report that this process begins now.
func NewHeader(schema string, flags []string) Header {
	host, _ := os.Hostname()
	return Header{
		Schema: schema, Date: time.Now().UTC().Truncate(time.Second), Host: host,
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: CPU(), Cores: runtime.NumCPU(),
		Go: runtime.Version(), Version: ringo.Version, Flags: flags,
	}
}

// CPU is the model of the processor where the system tells it, else the architecture.
func CPU() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// SaveReport writes a report of any schema as JSON.
func SaveReport(file string, report any) error {
	b, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
