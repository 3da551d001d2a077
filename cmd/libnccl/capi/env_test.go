package capi

import (
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// looked is lookup of an environment.
func looked(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

// TestConfFiles: a variable overrides the user's file, and the user's file overrides the machine's.
func TestConfFiles(t *testing.T) {
	at := func(home string, err error) func() (*user.User, error) {
		return func() (*user.User, error) { return &user.User{HomeDir: home}, err }
	}
	env := map[string]string{"HOME": filepath.FromSlash("/home/of/variable")}
	for _, test := range []struct {
		who  func() (*user.User, error)
		want []string
	}{
		{at(filepath.FromSlash("/home/me"), nil), []string{filepath.FromSlash("/home/me/.nccl.conf"), systemConf}},
		{at("", errors.New("nobody")), []string{filepath.FromSlash("/home/of/variable/.nccl.conf"), systemConf}},
	} {
		require.Equal(t, test.want, confFiles(looked(env), test.who))
	}
	require.Equal(t, []string{systemConf}, confFiles(looked(nil), at("", nil)))
	file := filepath.Join(t.TempDir(), "conf")
	env["NCCL_CONF_FILE"] = file
	require.Equal(t, []string{file, systemConf}, confFiles(looked(env), at("/home/me", nil)))

	require.NoError(t, os.WriteFile(file,
		[]byte("#NCCL_ALGO=tree\nNCCL_NET=IB\nNCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\nNCCL_PROTO=LL\nRINGO_TLS=1\n"), 0o644))
	env["NCCL_NET"], env["NCCL_PROTO"] = "Socket", ""
	ReadFiles(looked(env), func(name, value string) error {
		env[name] = value
		return nil
	})
	// the machine's file may say more
	require.Subset(t, env, map[string]string{"HOME": env["HOME"], "NCCL_CONF_FILE": file, "NCCL_NET": "Socket",
		"NCCL_PROTO": "", "NCCL_DEBUG": "INFO", "RINGO_TLS": "1"})
}

// TestEnvSwitches: words such as "no" switch off too, and NCCL's numbers are read as NCCL reads them.
func TestEnvSwitches(t *testing.T) {
	of := func(name, value string) env {
		return env{func(n string) string { return map[string]string{name: value}[n] }}
	}
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "No": false, "off": false, "1": true,
		"true": true, "YES": true, "on": true} {
		require.Equal(t, want, of("RINGO_HOST", value).host(), value)
	}
	for variable, text := range map[string]string{"RINGO_HOST=perhaps": `RINGO_HOST="perhaps": want 1, true`,
		"RINGO_NCCL_VERSION=2": "want a version such as 2.30.7"} {
		name, value, _ := strings.Cut(variable, "=")
		_, err := New(of(name, value).get, func() string { return "" }, func() int { return -1 }).config()
		require.ErrorIs(t, err, ringo.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "4": true, "1": true, "x": true} {
		require.Equal(t, want, strings.Contains(of("RINGO_EMULATE", value).hint(), "RINGO_EMULATE is for"), value)
	}
	for value, want := range map[string]bool{"": true, "0": false, " 0x1": true, "1": true, "2": true, "word": true,
		"0 is no": false} {
		require.Equal(t, want, of("NCCL_COMM_BLOCKING", value).blocking(true, slog.New(slog.DiscardHandler)), value)
	}
}
