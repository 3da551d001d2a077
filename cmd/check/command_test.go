package check

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestMain lets the test binary run as "ringo check", or as a rank in a network namespace.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "check" {
		err := Command(context.Background(), os.Args[2:], os.Stdout, os.Stderr)
		if status, ok := errors.AsType[cli.ExitStatus](err); ok {
			os.Exit(int(status))
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("RINGO_TEST_RANK") == "" {
		os.Exit(m.Run())
	}
	testRank()
}

// testRank is a rank that is controlled by environment variables. RINGO_TEST_DOES is a shell command to run at the
// beginning of a stage.
func testRank() {
	within := time.Minute
	if d, err := time.ParseDuration(os.Getenv("RINGO_TEST_JOIN")); err == nil {
		within = d
	}
	j, err := join(context.Background(), joinOptions{Timeout: within, Host: os.Getenv("RINGO_TEST_RANK"),
		version: os.Getenv("RINGO_TEST_VERSION")})
	if err == nil {
		list := slices.DeleteFunc(stages(), func(s stage) bool {
			return !slices.Contains(strings.Fields(os.Getenv("RINGO_TEST_STAGES")), s.Name)
		})
		for i := range list {
			if d, err := time.ParseDuration(os.Getenv("RINGO_TEST_LIMIT")); err == nil {
				list[i].Quick = d
			}
			if name, does, _ := strings.Cut(os.Getenv("RINGO_TEST_DOES"), " "); name == list[i].Name {
				measure := list[i].Measure
				list[i].Measure = func(ctx context.Context, j *job) ([]measurement, error) {
					_ = exec.Command("sh", "-c", does).Run()
					return measure(ctx, j)
				}
			}
		}
		if d, err := time.ParseDuration(os.Getenv("RINGO_TEST_CLOCK")); err == nil {
			j.machine.Now = func() time.Time { return time.Now().Add(d) }
		}
		var r *report
		if r, err = run(context.Background(), j, config{Stages: list}); r != nil {
			_ = r.WriteJSON(os.Stdout)
		}
		j.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sshTo writes a file of hosts, and a shell script in place of ssh, whose first argument is the host.
func sshTo(t *testing.T, hosts, script string) (hostfile, ssh string) {
	if runtime.GOOS == "windows" {
		t.Skip("the command in place of ssh is a shell script")
	}
	dir := t.TempDir()
	hostfile, ssh = filepath.Join(dir, "hosts"), filepath.Join(dir, "ssh")
	require.NoError(t, os.WriteFile(hostfile, []byte(hosts), 0o644))
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\n"+script), 0o755))
	return hostfile, ssh
}

// TestCheckHosts: of the hosts of a file two answer, one is not there, and the first dies when it has answered. The
// verdict is the lowest rank's, whatever another says before, and a login may write as many lines as it likes.
func TestCheckHosts(t *testing.T) {
	lie := `{"schema":"ringo-check/1","version":"` + ringo.Version +
		`","verdict":"well","hosts":[{"name":"alpha","ranks":[0]},{"name":"liar","ranks":[1]}]}`
	for _, c := range []struct {
		hosts, script string
		says          []string
		reports       []string // hosts
	}{
		{"# the rack\nroot@dying\nroot@alpha 8\nbeta\ngone # since Monday\n",
			"case $1 in gone) echo 'ssh: connect to host gone port 22: No route to host' >&2; exit 255;;\n" +
				"root@dying) echo " + workerReady + "; read order; echo Bus error >&2; exit 7;; esac\n" +
				"echo Welcome to $1; echo\nshift\nexec \"$@\"\n",
			[]string{"2 hosts, 2 ranks", "host dying, rank 0: its process has ended: Bus error; look into its output",
				"host gone, rank 3: it does not answer: ssh: connect to host gone port 22: No route to host; is it up"},
			[]string{"alpha", "beta"}},
		{"alpha\nliar\n", "if [ $1 = liar ]; then echo " + workerReady + "; read order; echo '" + lie + "'; exit 0; fi\n" +
			"i=0; while [ $i -lt 1000 ]; do echo Welcome; i=$((i+1)); done; shift\nexec \"$@\"\n",
			[]string{"1 host, 1 rank", "host liar, rank 1: "}, []string{"alpha"}},
	} {
		hosts, ssh := sshTo(t, c.hosts, c.script)
		json := filepath.Join(t.TempDir(), "report.json")
		var stdout, stderr bytes.Buffer
		err := Command(t.Context(), []string{"-device", "host", "-hostfile", hosts, "-ssh", ssh, "-remote", os.Args[0],
			"-address", "127.0.0.1:0", "-json", json}, &stdout, &stderr)
		require.Equal(t, cli.ExitStatus(broken), err, "%s%s", &stdout, &stderr)
		for _, text := range c.says {
			require.Contains(t, stdout.String(), text)
		}
		r := reportIn(t, json)
		var names []string
		for _, h := range r.Hosts {
			names = append(names, h.Name)
		}
		require.Equal(t, c.reports, names)
		require.Equal(t, len(names) > 1, len(r.Of("network", "bandwidth")) > 0)
	}
}

// reportIn is the report in a file.
func reportIn(t *testing.T, file string) *report {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := readReport(bytes.NewReader(text))
	require.NoError(t, err)
	return r
}

// A report counts if it is of this version, by a rank about the hosts that were asked.
func TestReportIsOf(t *testing.T) {
	workers := []*worker{{host: "root@a"}, {host: "b"}}
	absent := []loss{{Host: "c"}}
	good := func() *report {
		return &report{Version: ringo.Version, Hosts: []hostReport{{Name: "a", Ranks: []int{0}},
			{Name: "b", Ranks: []int{1}}}, Findings: []finding{{Subject: of("c", "rank 2")}}}
	}
	require.NoError(t, good().isOf(0, workers, absent))
	for want, change := range map[string]func(r *report){
		"is of ringo 9":               func(r *report) { r.Version = "9" },
		"which was not asked":         func(r *report) { r.Hosts[1].Name = "z" },
		"not about its own host":      func(r *report) { r.Hosts[0].Ranks = []int{1} },
		"says nothing of host c":      func(r *report) { r.Findings = nil },
		"is not about its own host":   func(r *report) { r.Hosts = nil },
		"report says nothing of host": func(r *report) { r.Hosts = r.Hosts[:1] },
	} {
		r := good()
		change(r)
		require.ErrorContains(t, r.isOf(0, workers, absent), want)
	}
}

// Under "ringo run": one process ends before it comes, one is stopped, and the lowest of the others reports.
func TestCheckRunWithout(t *testing.T) {
	need.Tool(t, "sh")
	if runtime.GOOS == "windows" {
		t.Skip("the ranks are a shell script")
	}
	tier.Long(t)
	t.Parallel() // it waits
	script := "case $RINGO_RANK in 0) exit 0;; 2) kill -STOP $$;; esac; exec \"$@\""
	var stdout, stderr bytes.Buffer
	var err error
	patience := time.Second
	for ; ; patience *= 4 { // the machine may stop for a while, and the ranks come too late
		stdout.Reset()
		stderr.Reset()
		err = launch.Run(t.Context(), launch.Config{N: 4, Hosts: 4, Grace: 100 * time.Millisecond, Prefix: true,
			Reporter: true, Stdout: &stdout, Stderr: &stderr,
			Args: []string{"sh", "-c", script, "sh", os.Args[0], "check", "-device", "host", "-join-timeout",
				patience.String()}})
		if strings.Contains(stdout.String(), ": 2 hosts, 2 ranks") || patience > 10*time.Second {
			break
		}
	}
	ended, ok := errors.AsType[*launch.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, int(broken), ended.ExitStatus(), "%s%s", &stdout, &stderr)
	require.Contains(t, stdout.String(), "[1] ringo ")
	require.Contains(t, stdout.String(), ": 2 hosts, 2 ranks")
	require.Contains(t, stdout.String(), "rank 0: its process has ended: exit status 0; look into its output")
	require.Contains(t, stdout.String(), fmt.Sprint("rank 2: did not come within ", patience))
	require.Contains(t, stdout.String(), "network, bandwidth")
}

// TestCheckUnwritten: if a file cannot be written, the report is still printed, and the exit status is not 0.
func TestCheckUnwritten(t *testing.T) {
	f := commandFlags{cfg: config{Stages: []stage{}}, junit: filepath.Join(t.TempDir(), "gone", "x")}
	var stdout, stderr bytes.Buffer
	require.Equal(t, cli.ExitStatus(unjudged), f.carryOut(t.Context(), alone(), &stdout, &stderr))
	require.Contains(t, stdout.String(), "WELL")
	require.Contains(t, stderr.String(), "gone")
}

// Nobody serves the rendezvous, for rank 0 is not there: its host is named.
func TestCheckWithoutRank0(t *testing.T) {
	cmd := exec.Command(os.Args[0], "check", "-join-timeout", "300ms")
	cmd.Env = append(os.Environ(), "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=9",
		"RINGO_COMM_SECRET=x")
	text, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, int(broken), cmd.ProcessState.ExitCode(), "%s", text)
	require.Regexp(t, "ringo check: broken: host localhost, rank 0: nothing answers host .*, rank 1 at localhost:2009 "+
		"within 300ms .*is the host up", string(text))
}

// Nobody answers: there is nothing to judge.
func TestCheckHostsNobody(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("a\nb\nh\x1b[31m\n"), 0o644))
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	require.Equal(t, cli.ExitStatus(unjudged),
		Command(t.Context(), []string{"-hostfile", hosts, "-ssh", filepath.Join(dir, "none"), "-address",
			"127.0.0.1:0", "-json", dir + "/r.json", "-junit", dir + "/r.xml", "-metrics", dir + "/r.prom", "-html",
			dir + "/r.html", "-svg", dir + "/r.svg"}, &stdout, &stderr))
	require.Equal(t, 3, strings.Count(stderr.String(), "it does not answer"), "%s", &stderr)
	require.NotContains(t, stdout.String()+stderr.String(), "\x1b", "a terminal would obey it")
	require.Contains(t, stdout.String(), `host h\x1b[31m: it does not answer`)
	require.Contains(t, stdout.String(), "COULD NOT BE JUDGED")
	r := reportIn(t, dir+"/r.json")
	require.Equal(t, []string{"absent host a", "absent host b", "absent host h\x1b[31m"}, codes(r))
	require.Equal(t, unjudged, r.Verdict)
	require.WithinDuration(t, time.Now(), r.Started, time.Minute)
	for file, says := range map[string]string{"r.xml": "absent host b", "r.prom": "ringo_check_status 3",
		"r.html": "host b", "r.svg": "<svg"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Contains(t, string(text), says)
		require.NotContains(t, string(text), "\x1b", file)
	}
}

// TestWithoutReport: a check that does not come about leaves a report, unless another rank may have written one.
func TestWithoutReport(t *testing.T) {
	gone := &absentError{Who: component{"h0", "rank 0"}, Why: "it is gone"}
	for _, c := range []struct {
		name, rank string
		err        error
		newer      bool // the file is newer than the check
		code       string
	}{
		{"the first rank", "0", errors.New("the port is in use"), false, "not-judged the job"},
		{"the first rank, whatever there is", "0", errors.New("the port is in use"), true, "not-judged the job"},
		{"without the leader", "1", gone, false, "absent host h0, rank 0"},
		{"where the leader may have reported", "1", gone, true, ""},
		{"where the others go on", "1", &absentError{Why: "too late", wait: func(context.Context) {}}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("RINGO_RANK", c.rank)
			t.Setenv("RINGO_SIZE", "2")
			t.Setenv("RINGO_COMM_ID", "127.0.0.1:9")
			t.Setenv("RINGO_COMM_SECRET", "a test's")
			file := filepath.Join(t.TempDir(), "r.json")
			require.NoError(t, os.WriteFile(file, []byte("another"), 0o644))
			started := time.Now().Add(time.Minute)
			if c.newer {
				started = time.Now().Add(-time.Minute)
			}
			f := commandFlags{json: file}
			var stdout, stderr bytes.Buffer
			require.Error(t, f.noReport(t.Context(), started, c.err, &stdout, &stderr))
			require.Contains(t, stderr.String(), "ringo check: ")
			if c.code != "" {
				require.Equal(t, []string{c.code}, codes(reportIn(t, file)))
				return
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "another", string(text))
		})
	}
}

// TestCheckHostsSilent: a command in place of ssh that never answers, or stops answering, does not block the launcher,
// even if a process that it has started keeps its output open.
func TestCheckHostsSilent(t *testing.T) {
	tier.Long(t)
	for _, c := range []struct{ says, want string }{
		{"", "it does not answer: nothing within"},
		{"echo " + workerReady, "host a, which leads, gave no report: nothing within"},
	} {
		hosts, ssh := sshTo(t, "a\n", "sleep 60 &\necho $! >$0.pid\n"+c.says+"\nwait\n")
		t.Run(c.want, func(t *testing.T) {
			t.Parallel() // it waits
			f := commandFlags{hosts: hosts, ssh: ssh, remote: "ringo", address: "127.0.0.1:0", join: time.Minute,
				patience: 100 * time.Millisecond}
			if c.says == "" {
				f.join = 500 * time.Millisecond
			}
			var stdout, stderr bytes.Buffer
			err := f.overHosts(t.Context(), &stdout, &stderr)
			require.Equal(t, cli.ExitStatus(unjudged), err)
			require.Contains(t, stderr.String(), c.want)
			if pid, err := os.ReadFile(ssh + ".pid"); err == nil { // else it had not begun
				n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
				require.NoError(t, err)
				p, err := os.FindProcess(n)
				require.NoError(t, err)
				require.NoError(t, p.Kill())
			}
		})
	}
}

// A host's name cannot be a flag of ssh.
func TestCheckHostsFlag(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("a\n-oProxyCommand=touch${IFS}x\n"), 0o644))
	_, err := readHosts(hosts)
	require.ErrorContains(t, err, "is no name of a host")
}

// Mistakes in the command line are refused.
func TestCheckUsage(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for args, want := range map[string]string{
		"-quick -full":                "which of them",
		"-device tpu":                 "unknown device",
		"-baseline NONE":              "-baseline",
		"-json NONE/x":                "-json",
		"-hostfile NONE":              "-hostfile",
		"-expect-gpus -1":             "number of GPUs",
		"-hostfile x -every 1s":       "-every",
		"-hostfile x -metrics :0":     "address of -metrics",
		"all":                         "no arguments",
		"-device host -nccl":          "leaves GPUs alone",
		"-device host -expect-gpus 8": "leaves GPUs alone",
		"-baseline command_test.go":   "it is no report of",
		"-nccl libnccl.so":            "no arguments",
		"-join-timeout 0s":            "-join-timeout 0s: want more than 0",
		"-g 0":                        "-g 0: want a number of GPUs",
		"-every -1s":                  "-every -1s: want more than 0",
		"-junit NONE/x":               "-junit",
		"-svg NONE/x":                 "-svg",
		"-html NONE/x":                "-html",
		"-metrics NONE/x":             "-metrics",
	} {
		list := strings.Fields(args)
		for i := range list {
			list[i] = strings.Replace(list[i], "NONE", none, 1)
		}
		err := Command(t.Context(), list, io.Discard, io.Discard)
		_, ok := errors.AsType[*cli.UsageError](err)
		require.True(t, ok, "%s: %v", args, err)
		require.ErrorContains(t, err, want)
	}
}

// TestCheckFlags: the values of commandFlags for command lines, and the defaults.
func TestCheckFlags(t *testing.T) {
	for args, want := range map[string]commandFlags{
		"":               {join: 20 * time.Second, device: "auto", gpus: 4},
		"-quick -json -": {join: 20 * time.Second, device: "auto", gpus: 4},
		"-full -nccl -join-timeout 1ns": {join: 1, device: "auto", gpus: 4,
			cfg: config{Full: true, NCCL: "libnccl.so.2"}},
		"-nccl=x.so -device cuda": {join: 20 * time.Second, device: "cuda", gpus: 4,
			cfg: config{NCCL: "x.so", ExpectGPUs: 1}},
		"-device cuda -expect-gpus 8": {join: 20 * time.Second, device: "cuda", gpus: 4, cfg: config{ExpectGPUs: 8}},
		"-device emu -g 1": {join: 20 * time.Second, device: "emu", gpus: 1,
			cfg: config{GPU: gpu.Options{Emulate: 1}}},
		"-device host -every 1s": {join: 20 * time.Second, device: "host", gpus: 4, every: time.Second,
			cfg: config{NoGPUs: true}},
		"-metrics :9 -hostfile x -address h:1": {join: 20 * time.Second, device: "auto", gpus: 4, metrics: ":9", hosts: "x",
			address: "h:1"},
	} {
		var f commandFlags
		fs := flag.NewFlagSet("check", flag.ContinueOnError)
		f.register(fs)
		require.NoError(t, fs.Parse(strings.Fields(args)))
		require.NoError(t, f.complete(), args)
		require.Equal(t, "ssh -o BatchMode=yes -o ConnectTimeout=10", f.ssh)
		require.Equal(t, "ringo", f.remote)
		f.ssh, f.remote, f.quick, f.json = "", "", false, ""
		require.Equal(t, want, f, args)
		require.Equal(t, want.metrics == ":9", f.serves())
	}
	for metrics, want := range map[string]bool{"": false, "file": false, ":": false, "a:": false, "a:1": true,
		"/a:1": false, "[::1]:9": true} {
		require.Equal(t, want, (&commandFlags{metrics: metrics}).serves(), metrics)
	}
}

// The last report is served.
func TestCheckMetrics(t *testing.T) {
	m := new(metricsServer)
	require.NoError(t, m.listen(t.Context(), "127.0.0.1:0"))
	defer m.close()
	none, err := http.Get("http://" + m.ln.Addr().String() + "/metrics")
	require.NoError(t, err)
	defer none.Body.Close()
	why, err := io.ReadAll(none.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, none.StatusCode)
	require.Contains(t, string(why), "the first check is under way")
	m.report.Store(&report{Verdict: degraded, Findings: []finding{
		{Severity: degraded, Code: "slow", Stage: "network", Subject: of("a\"b\\\n", "eth0")},
	}})
	resp, err := http.Get("http://" + m.ln.Addr().String() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text),
		"\nringo_check_finding{severity=\"degraded\",code=\"slow\",stage=\"network\",host=\"a\\\"b\\\\\\n\",part=\"eth0\"} "+
			"1\n")
}

// TestCheckWithoutPort: what has judged nothing has status 2 or 3, never that of a verdict.
func TestCheckWithoutPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var stderr bytes.Buffer
	err = Command(t.Context(), []string{"-device", "host", "-metrics", l.Addr().String()}, io.Discard, &stderr)
	require.Equal(t, cli.ExitStatus(unjudged), err)
	require.Contains(t, stderr.String(), "-metrics: listen tcp")
	for _, address := range []string{":99999", "a:b"} {
		usage := new(cli.UsageError)
		require.ErrorAs(t, Command(t.Context(), []string{"-metrics", address}, io.Discard, &stderr), &usage, address)
	}
}

// TestLongest: a launcher waits for the meeting, for the work and for the answers; without end, if the work has none.
func TestLongest(t *testing.T) {
	for _, c := range []struct {
		config config
		within time.Duration
	}{
		{config{}, withinQuick},
		{config{Full: true}, withinFull},
		{config{Full: true, Within: time.Minute}, time.Minute},
		{config{Stages: []stage{}, Within: time.Second}, time.Second},
	} {
		require.Equal(t, time.Hour+connectTime+rollTime+c.within+2*answerTime, c.config.Longest(time.Hour))
	}
	require.Zero(t, (&config{Stages: []stage{}}).Longest(time.Hour))
}
