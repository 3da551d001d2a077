package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/hangs"
)

// A file that is cut off, claims false lengths, contains itself or would run code gives one line of error, alone and
// beside good files, and no code of it runs.
func TestWhyHostile(t *testing.T) {
	good := t.TempDir()
	writeDumps(t, good)
	s := hangs.All(0)[0]
	dir := t.TempDir()
	require.NoError(t, s.Write(dir, hangs.Dumps))
	whole, err := os.ReadFile(filepath.Join(dir, "nccl_trace_rank_0"))
	require.NoError(t, err)
	ran := filepath.Join(t.TempDir(), "ran")
	for name, text := range map[string]string{
		"cut off":              string(whole[:len(whole)/2]),
		"without its end":      string(whole[:len(whole)-1]),
		"a list in itself":     "\x80\x02}q\x00(X\x07\x00\x00\x00entries]q\x01h\x01au.",
		"a dictionary in it":   "\x80\x02}q\x00(X\x09\x00\x00\x00pg_configh\x00X\x07\x00\x00\x00entries](h\x00eu.",
		"a call of the system": fmt.Sprintf("\x80\x02cposix\nsystem\nX%c\x00\x00\x00touch %s\x85R.", len("touch "+ran), ran),
		"a class":              "\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
		"an object":            "\x80\x02(X\x01\x00\x00\x00aiposix\nsystem\n.",
		"built":                "\x80\x02}}b.",
		"a persistent name":    "\x80\x02X\x01\x00\x00\x00aQ.",
		"a long string":        "\x80\x02X\xff\xff\xff\x7fa.",
		"a long integer":       "\x80\x02\x8b\xff\xff\xff\x7f.",
		"many marks":           "\x80\x02" + strings.Repeat("(", 1<<20),
		"deep lists":           "\x80\x02" + strings.Repeat("]", 1<<20) + strings.Repeat("a", 1<<20-1) + ".",
		"deep JSON":            `{"version": "2.4", "pg_config": ` + strings.Repeat("[", 1<<20),
		"JSON of other things": `{"pg_config": 7, "entries": {"record_id": 1}}`,
	} {
		file := filepath.Join(t.TempDir(), "nccl_trace_rank_9")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		var out, errs strings.Builder
		code := ringoMain(t.Context(), []string{"why", file}, &out, &errs)
		if code != 0 { // a file without entries is no error
			require.Equal(t, 1, code, "%s: %s%s", name, out.String(), errs.String())
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), "%s: %s", name, errs.String())
			require.Less(t, len(errs.String()), 500, name)
		}
		out.Reset()
		require.Equal(t, 3, ringoMain(t.Context(), []string{"why", good, file}, &out, &errs), "%s: %s", name, errs.String())
		require.Contains(t, out.String(), "rank 2 never called all_reduce #3", name)
	}
	require.NoFileExists(t, ran)
}
