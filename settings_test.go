package ringo

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/setting"
)

// settingFiles are those that name environment variables of the product.
var settingFiles = []string{"env.go", "bootstrap/env.go", "cmd/libnccl/capi/env.go", "cmd/libcuda/go_unsafe.go"}

// The table of docs/settings.md has each variable that the product reads, and no other.
func TestSettingsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "settings.md"))
	require.NoError(t, err)
	said := make(map[string]bool)
	for _, x := range regexp.MustCompile("`((?:RINGO|NCCL)_[A-Z0-9_]+[A-Z0-9])`").FindAllStringSubmatch(string(text), -1) {
		said[x[1]] = true
	}
	read := make(map[string]bool)
	name := regexp.MustCompile(`"((?:RINGO|NCCL)_[A-Z0-9_]+)"`)
	for _, file := range settingFiles {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, x := range name.FindAllStringSubmatch(string(code), -1) {
			read[x[1]] = true
		}
	}
	require.Equal(t, read, said)
}

// Nonsense in a variable is refused, and the variable named; in one of NCCL's it is said.
func TestNonsense(t *testing.T) {
	t.Chdir(t.TempDir())
	anything := []string{ // what only those know who use it, which is at Open too
		"RINGO_TRANSPORT", "RINGO_NET", "NCCL_NET", "RINGO_NET_PLUGIN", "NCCL_NET_PLUGIN", "RINGO_IB_HCA", "NCCL_IB_HCA",
		"RINGO_PLAN", "RINGO_SOCKET_IFNAME",
		"NCCL_SOCKET_IFNAME", "RINGO_SHM_DIR", "RINGO_HISTORY", "RINGO_HOSTID", "NCCL_HOSTID", "RINGO_CUDA_LIBRARY",
		"RINGO_DEBUG_FILE", "NCCL_DEBUG_FILE",
	}
	n := 0
	for _, r := range new(Config).settings(new(variables)) {
		for _, name := range r.Names {
			if slices.Contains(anything, name) {
				continue
			}
			n++
			for _, value := range []string{"nonsense", "+-7", "\x01"} {
				e := &variables{Environment: setting.Environment{Get: environment(name + "=" + value)}}
				new(Config).read(e)
				_, err := Config{Log: slog.New(slog.DiscardHandler)}.fill(e.Get)
				if setting.OfNCCL(name) && name != "NCCL_ALGO" { // whose words NCCL refuses too
					require.NoError(t, err, name)
					require.Contains(t, strings.Join(e.Odd, "\n"), name)
					continue
				}
				require.ErrorIs(t, err, ErrInvalid, name)
				if !strings.HasPrefix(name, "RINGO_TLS_") { // which names the one that is missing
					require.ErrorContains(t, err, name)
				}
			}
		}
	}
	require.Greater(t, n, 50)
}

// Nothing else of the product reads the environment; it may only be given to those. Tools and tests are free.
func TestEnvironmentRead(t *testing.T) {
	given := regexp.MustCompile(`\b(fill|FromEnv|Incomplete)\(os\.Getenv\)|\bTLSFromEnv\(os\.Getenv\)`)
	tools := regexp.MustCompile(`^(\.git|adapters|bench|examples|ringotest|scripts|cmd/play|cmd/libnccl/kit|` +
		`internal/(test|house)|transport/transporttest)(/|$)`)
	reads := regexp.MustCompile(`\b(os|syscall)\.(Getenv|LookupEnv)\b`)
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case e.IsDir() && tools.MatchString(path):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			slices.Contains(settingFiles, path):
			return nil
		}
		code, err := os.ReadFile(path)
		if !bytes.Contains(code, []byte("Getenv")) && !bytes.Contains(code, []byte("LookupEnv")) {
			return err // quickly
		}
		if line := reads.Find(given.ReplaceAll(code, nil)); line != nil {
			t.Errorf("%s uses %s: settings are read in %v", path, line, settingFiles)
		}
		return err
	}))
}
