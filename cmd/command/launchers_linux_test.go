package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// These tests have other people's launchers start "ringo bench" on several hosts, which are this
// machine under several names, and set nothing that says where rank 0 is.

// output is the output of a command, which must succeed.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // more than the busiest machine needs
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the launcher ends its ranks too
	cmd.WaitDelay = 5 * time.Second
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return string(text)
}

// measured fails the test unless a bench of four ranks on two hosts went well.
func measured(t *testing.T, text string) {
	t.Helper()
	for _, want := range []string{"4 ranks in 4 processes", "network socket", "transport shm",
		"# Out of bounds values : 0 OK"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "derived", "the secret is random")
}

// benchArgs is a small measurement by this test's own binary as one rank.
func benchArgs(t *testing.T) []string {
	self, err := os.Executable()
	require.NoError(t, err)
	return []string{self, "bench", "allreduce", "-np", "0", "-e", "128", "-n", "2", "-w", "1"}
}

// remoteShell is a script that launchers call in the place of ssh, as "FILE HOST COMMAND…".
func remoteShell(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nexport RINGO_HOSTID=$1\nshift\nexec sh -c \"$*\"\n"
	require.NoError(t, os.WriteFile(file, []byte(script), 0o755))
	return file
}

func TestOpenMPI(t *testing.T) {
	tier.Heavy(t)
	mpirun := need.Tool(t, "mpirun.openmpi")
	args := []string{"--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", remoteShell(t), "--host",
		"127.0.0.1:2,127.0.0.2:2", "-np", "4"}
	measured(t, output(t, []string{"TMPDIR=" + t.TempDir()}, mpirun, append(args, benchArgs(t)...)...))
}

func TestMPICH(t *testing.T) {
	tier.Heavy(t)
	mpirun := need.Tool(t, "mpirun.mpich")
	args := []string{"-launcher", "rsh", "-launcher-exec", remoteShell(t), "-hosts", "127.0.0.1,127.0.0.2", "-np", "4"}
	measured(t, output(t, nil, mpirun, append(args, benchArgs(t)...)...))
}

func TestSlurm(t *testing.T) {
	tier.Heavy(t)
	srun := need.Tool(t, "srun")
	env := slurm(t)
	// Each task takes the name of its node as its host.
	args := append([]string{"-N", "2", "-n", "4", "sh", "-c", `RINGO_HOSTID=$SLURMD_NODENAME exec "$@"`, "sh"},
		benchArgs(t)...)
	text := output(t, append(env, "RINGO_COMM_SECRET=Yb3mRq0wXk9TzV5uLd7c"), srun, args...)
	measured(t, text)
}

// slurm starts a cluster of two nodes, 127.0.0.1 and 127.0.0.2, and returns the environment of its
// clients. It needs no privileges and no cgroups, and writes to one folder only.
func slurm(t *testing.T) (env []string) {
	t.Helper()
	munged, slurmctld, slurmd := need.Tool(t, "munged"), need.Tool(t, "slurmctld"), need.Tool(t, "slurmd")
	sinfo := need.Tool(t, "sinfo")
	dir, err := os.MkdirTemp("", "slurm") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // munge insists that all can reach its socket
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
		return file
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	ports := []string{freeport.Port(t), freeport.Port(t), freeport.Port(t)}
	socket := filepath.Join(dir, "munge")
	key := write("key", rand.Text()+rand.Text() /* a secret: who knows the key may run jobs as this user */, 0o400)
	conf := write("slurm.conf", strings.NewReplacer("DIR", dir, "HOST", host, "USER", fmt.Sprint(os.Getuid()),
		"PORT0", ports[0], "PORT1", ports[1], "PORT2", ports[2]).Replace(slurmConf), 0o644)
	// Slurm looks for cgroups before it asks whether anything needs them.
	plugin := "disabled"
	version, err := exec.Command(slurmd, "-V").Output()
	require.NoError(t, err)
	if v := strings.TrimPrefix(strings.TrimSpace(string(version)), "slurm-wlm "); v < "23.11" {
		plugin = "cgroup/v1"
	}
	write("cgroup.conf", "CgroupPlugin="+plugin+"\n", 0o644)

	var log strings.Builder
	daemon := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		out := filepath.Join(dir, fmt.Sprintf("log%d", log.Len()))
		file, err := os.Create(out)
		require.NoError(t, err)
		defer file.Close()
		fmt.Fprintf(&log, "%s\n", out)
		cmd.Stdout, cmd.Stderr = file, file
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
			if text, err := os.ReadFile(out); err == nil && t.Failed() {
				t.Logf("%v:\n%s", cmd.Args, text)
			}
		})
	}
	// until polls for a sign that a daemon is ready, since daemons do not tell.
	until := func(what string, ready func() bool) {
		t.Helper()
		end := time.Now().Add(2 * time.Minute)
		for !ready() {
			require.True(t, time.Now().Before(end), what)
			time.Sleep(20 * time.Millisecond)
		}
	}
	daemon(munged, "--foreground", "--key-file="+key, "--socket="+socket, "--pid-file="+socket+".pid",
		"--log-file="+socket+".log", "--seed-file="+socket+".seed")
	until("munged listens", func() bool { _, err := os.Stat(socket); return err == nil })
	daemon(slurmctld, "-D", "-c")
	daemon(slurmd, "-D", "-N", "127.0.0.1")
	daemon(slurmd, "-D", "-N", "127.0.0.2")
	env = []string{"SLURM_CONF=" + conf}
	until("both nodes are idle", func() bool {
		cmd := exec.Command(sinfo, "-h", "-o", "%D %T")
		cmd.Env = append(os.Environ(), env...)
		text, _ := cmd.Output()
		return strings.TrimSpace(string(text)) == "2 idle"
	})
	return env
}

const slurmConf = `ClusterName=ringo
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT0
SlurmUser=USER
SlurmdUser=USER
AuthType=auth/munge
AuthInfo=socket=DIR/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=DIR
SlurmdSpoolDir=DIR/%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/%n.pid
SlurmdParameters=config_overrides
MailProg=/bin/true
ReturnToService=2
NodeName=127.0.0.1 NodeHostname=HOST NodeAddr=127.0.0.1 Port=PORT1 CPUs=2
NodeName=127.0.0.2 NodeHostname=HOST NodeAddr=127.0.0.2 Port=PORT2 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
`
