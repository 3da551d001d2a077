package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// completing are command lines up to the word to complete, each with its completions.
var completing = map[string][]string{
	"exp":                                   {"explain"},
	"help ex":                               {"explain"},
	"bench allr":                            {"allreduce"},
	"bench allreduce -transport un":         {"unix"},
	"bench allreduce -np 4 alltoa":          {"alltoall"},
	"sim allreduce -net n":                  {"ndr", "nvlink"},
	"sim allreduce -net=n":                  {"-net=ndr", "-net=nvlink"},
	"sim allreduce -algo ring,tr":           {"ring,tree"},
	"sim allreduce -la":                     {"-latency"},
	"explain allreduce --m":                 {"--max-blocks", "--min-blocks"},
	"explain reduce -d bf":                  {"bfloat16"},
	"explain -deterministic reducesc":       {"reducescatter"},
	"completion ":                           {"bash", "fish", "zsh"},
	"plot -o ":                              nil, // a file
	"run -- any":                            nil,
	"nonsense ":                             nil,
	"ptx ":                                  {"check"},
	"info -device ":                         {"auto", "cuda", "emu"},
	"bench allreduce -peer ":                {"openmpi", "mpich", "gloo", "nccl"},
	"explain allreduce -policy ":            {"default", "latency", "efficiency", "zero"},
	"explain allreduce -steps ":             {"auto", "all", "none"},
	"bench allreduce -o bit":                {"bitand", "bitor", "bitxor"},
	"explain allreduce -device cuda -path ": {"p2p", "pcie", "host memory", "bridge"},
}

func TestCandidates(t *testing.T) {
	for line, want := range completing {
		_, out, _ := ringoHere(append([]string{completeCommand}, strings.Split(line, " ")...)...)
		var got []string
		if out != "" {
			got = strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		}
		require.Equal(t, want, got, "%q", line)
	}
	require.Equal(t, []string{"ndr", "nvlink"}, candidates([]string{"sim", "-net", "=", "n"}), "as bash cuts -net=n")
	require.Len(t, candidates([]string{"sim", "-net", "="}), 7)
	require.Empty(t, candidates(nil))
	for _, c := range commands {
		for _, f := range candidates([]string{c.name, "-"}) {
			code, _, stderr := ringoHere(c.name, f+"=x", "-h")
			require.NotContains(t, stderr, "unknown flag", "%s: %d", c.name, code)
		}
	}
}

// The script of each shell that this machine has offers the candidates that the program prints.
func TestCompletionOfShells(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "ringo")))
	code, _, stderr := ringoHere("completion", "tcsh")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `unknown shell "tcsh"`)
	for shell, ask := range map[string]string{
		"bash": `COMP_WORDS=(ringo "${@:1}"); COMP_CWORD=$#; _ringo; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `complete -C "ringo $argv"`,
		"zsh":  `compadd() { printf '%s\n' "${found[@]}" }; _files() { :; }; words=(ringo "$@"); CURRENT=$#words; _ringo`,
	} {
		t.Run(shell, func(t *testing.T) {
			program := need.Tool(t, shell)
			_, script, _ := ringoHere("completion", shell)
			script = strings.ReplaceAll(script, " "+programName()+"\n", " ringo\n") // the program is this test's binary
			script = strings.ReplaceAll(script, "-c "+programName()+" ", "-c ringo ")
			for _, line := range tier.Some(4, []string{"sim allreduce -net n", "exp", "sim allreduce -algo ring,tr",
				"bench allr"}) {
				var cmd *exec.Cmd
				switch shell {
				case "bash":
					cmd = exec.Command(program, append([]string{"--norc", "-c", script + ask, "-"}, strings.Split(line, " ")...)...)
				case "zsh":
					cmd = exec.Command(program, append([]string{"-f", "-c", "compdef() { :; }\n" + script + ask, "-"},
						strings.Split(line, " ")...)...)
				case "fish":
					cmd = exec.Command(program, "--no-config", "-c", script+ask, line)
				}
				cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Equal(t, completing[line], strings.Fields(string(out)), "%q", line)
			}
		})
	}
}
