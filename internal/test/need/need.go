// Package need is how a test asks for what is not on every machine with Go: a compiler, an interpreter, a right, a
// device. Without it the test is skipped, and the message says what to install; where the variable REQUIRE names it, a
// word such as "gcc" or "netns", the test fails.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tools are the programs that tests start, each with its word of REQUIRE and the packages of Debian that bring it. No
// test starts another one.
var tools = map[string]struct{ word, packages string }{
	"awk":            {"bash", "mawk"},
	"bash":           {"bash", "bash"},
	"chromium":       {"chromium", "chromium"},
	"clang++-19":     {"clang", "clang-19"},
	"fish":           {"fish", "fish"},
	"g++":            {"gcc", "g++"},
	"gcc":            {"gcc", "gcc libc6-dev"},
	"git":            {"git", "git"},
	"go":             {"go", "golang-go"},
	"ip":             {"netns", "iproute2"},
	"mpicc.openmpi":  {"openmpi", "libopenmpi-dev"},
	"mpirun.openmpi": {"openmpi", "openmpi-bin"},
	"mpiexec.hydra":  {"mpich", "mpich"},
	"mpirun.mpich":   {"mpich", "mpich"},
	"munged":         {"slurm", "munge"},
	"nft":            {"netns", "nftables"},
	"node":           {"node", "nodejs"},
	"ptxas":          {"ptxas", "nvidia-cuda-toolkit"},
	"python3":        {"python3", "python3"},
	"scontrol":       {"slurm", "slurm-client"},
	"slurmctld":      {"slurm", "slurmctld"},
	"slurmd":         {"slurm", "slurmd"},
	"srun":           {"slurm", "slurm-client"},
	"sh":             {"sh", "dash"},
	"sinfo":          {"slurm", "slurm-client"},
	"tc":             {"netns", "iproute2"},
	"timeout":        {"bash", "coreutils"},
	"unshare":        {"netns", "util-linux"},
	"zsh":            {"zsh", "zsh"},
}

// Required reports whether REQUIRE names what.
func Required(what string) bool {
	return slices.Contains(strings.FieldsFunc(os.Getenv("REQUIRE"), func(r rune) bool { return r == ' ' || r == ',' }),
		what)
}

// Missing skips the test because the machine lacks what, or fails it if REQUIRE names that.
func Missing(t testing.TB, what, why string) {
	t.Helper()
	if Required(what) {
		t.Fatalf("REQUIRE=%s: %s", what, why)
	}
	t.Skipf("needs %s: %s", what, why)
}

// Tool returns the path of a program on PATH or in the folders of the administrator's programs. Without the program, it
// skips the test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	tool, known := tools[name]
	if !known {
		t.Fatalf("%s is not in the table of tools, which says its package", name)
	}
	path, err := exec.LookPath(name)
	for _, folder := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(folder, name))
		}
	}
	if err == nil && name == "gcc" {
		err = headers(path)
	}
	if err == nil && name == "go" && exec.Command(path, "list", "unsafe").Run() != nil {
		Missing(t, tool.word, "the go command has no folder for its cache: set GOCACHE")
	}
	if err != nil {
		Missing(t, tool.word, name+" is not here: apt-get install "+tool.packages)
	}
	return path
}

// headers returns an error where a compiler comes without the headers of C's library, which are a package of their own.
func headers(gcc string) error {
	cmd := exec.Command(gcc, "-E", "-x", "c", "-", "-o", os.DevNull)
	cmd.Stdin = strings.NewReader("#include <stdio.h>\n")
	return cmd.Run()
}
