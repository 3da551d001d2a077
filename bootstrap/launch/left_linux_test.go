package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A way is one in which a rank leaves processes behind: what it starts, how many are there then, and what it does.
type way struct {
	starts string // the processes: see leftScene
	count  int
	exec   bool // the rank becomes another program
	leaves bool // the rank leaves its process group
	end    bool // it is the session that leaves: named, and ended by nobody
}

var ways = map[string]way{
	"child":                     {starts: "stay", count: 1},
	"group of its own":          {starts: "group stay", count: 1},
	"parent ended first":        {starts: "orphan stay", count: 1},
	"orphan in its own group":   {starts: "orphan group stay", count: 1},
	"deaf to signals":           {starts: "group deaf stay", count: 1},
	"stopped":                   {starts: "orphan halt stay", count: 1},
	"no environment":            {starts: "orphan group bare stay", count: 1},
	"outputs closed":            {starts: "closed stay", count: 1},
	"brood of groups":           {starts: "group brood stay", count: 4},
	"starts another at its end": {starts: "group again stay", count: 1},
	"rank execs":                {starts: "group stay", count: 1, exec: true},
	"rank leaves its group":     {starts: "stay", count: 1, leaves: true},
	"session of its own":        {starts: "orphan session stay", count: 1, end: true},
	"child in its own session":  {starts: "session stay", count: 1, end: true},
}

// spawn starts this program as the processes that words describe, with a mark that all of them keep.
func spawn(words string, mark string) {
	attr := &syscall.SysProcAttr{}
	env := append(os.Environ(), scene+"=left", "MARK="+mark)
	out := os.Stdout
	for w := range strings.FieldsSeq(words) {
		switch w {
		case "group":
			attr.Setpgid = true
		case "session":
			attr.Setsid = true
		case "bare":
			env = []string{scene + "=left"}
		case "closed":
			out = nil
		}
	}
	cmd := exec.Command(os.Args[0], words, mark)
	cmd.Env, cmd.SysProcAttr = env, attr
	if out != nil {
		cmd.Stdout, cmd.Stderr = out, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	}
	if strings.HasPrefix(words, "orphan") {
		cmd.Wait()
	}
}

// leftScene is a process that a rank has started. Its first argument says what it does, its second is a file to be
// written when it does.
func leftScene() {
	words, mark := os.Args[1], os.Args[2]
	if rest, ok := strings.CutPrefix(words, "orphan "); ok {
		spawn(rest, mark)
		return
	}
	if strings.Contains(words, "deaf") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	}
	if strings.Contains(words, "brood") {
		for range 3 {
			spawn("group stay", mark)
		}
	}
	os.WriteFile(fmt.Sprint(mark, ".", os.Getpid()), nil, 0o600)
	if strings.Contains(words, "halt") {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	parent := os.Getppid()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(words, "again") && os.Getppid() != parent { // it is an orphan now, and starts one more
			spawn("group stay", mark)
			parent = os.Getppid()
		}
	}
}

// leaveScene is a rank that leaves processes in a way, and then ends as END says.
func leaveScene() {
	if signal.Ignored(syscall.SIGHUP) { // nohup has started the tests
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		go func() { <-hangup; os.Exit(129) }()
	}
	w := ways[os.Getenv("WAY")]
	mark := filepath.Join(os.Getenv("DIR"), os.Getenv("RINGO_RANK"))
	if os.Getenv("END") == "" { // it has become this program
		time.Sleep(30 * time.Second)
	}
	spawn(w.starts, mark)
	for len(marks(mark)) < w.count {
		time.Sleep(time.Millisecond)
	}
	if w.leaves {
		syscall.Setpgid(0, syscall.Getppid()) // the keeper's
	}
	os.WriteFile(mark+".ready", nil, 0o600)
	switch os.Getenv("END") {
	case "well":
		return
	case "failed":
		os.Exit(3)
	}
	if w.exec {
		syscall.Exec(os.Args[0], []string{"another"}, append(os.Environ(), "END="))
	}
	time.Sleep(30 * time.Second)
}

func marks(mark string) []string {
	files, _ := filepath.Glob(mark + ".[0-9]*")
	return files
}

// marked are the processes, other than this one, whose environment or command line has a text.
func marked(text string) (list []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		env, _ := os.ReadFile(d + "/environ")
		args, _ := os.ReadFile(d + "/cmdline")
		if pid != os.Getpid() && (bytes.Contains(env, []byte(text)) || bytes.Contains(args, []byte(text))) && !zombie(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// A leaving is a way and an end of a job, of ranks or of a Program.
type leaving struct {
	way, end string
	ranks    int // 1 is a Program
}

// What ranks have started ends with the job, in whatever way it has left its rank, and however the job ends. Processes
// in sessions of their own are named.
func TestNothingIsLeft(t *testing.T) {
	var all []leaving
	names := slices.Sorted(maps.Keys(ways))
	for i := range names {
		for j, end := range []string{"well", "failed", "killed", "terminated", "interrupted", "hangup"} {
			all = append(all, leaving{names[(i+j)%len(names)], end, 2})
		}
		all = append(all, leaving{names[i], []string{"well", "failed", "killed"}[i%3], 1})
	}
	group := tier.Together(t)
	for _, l := range tier.Some(19, all) {
		group.Run(fmt.Sprintf("%s, %s, %d", l.way, l.end, l.ranks), l.try)
	}
	group.Wait()
}

func (l leaving) try(t *testing.T) {
	w, dir := ways[l.way], t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out")) // what is left may hold a pipe open
	require.NoError(t, err)
	defer out.Close()
	cmd := exec.Command(os.Args[0])
	kind := map[int]string{1: "program", 2: "nest leave"}[l.ranks]
	cmd.Env = append(os.Environ(), scene+"="+kind, "WAY="+l.way, "END="+l.end, "DIR="+dir)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	defer func() {
		for _, pid := range marked(dir) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	s := map[string]syscall.Signal{"killed": syscall.SIGKILL, "terminated": syscall.SIGTERM, "interrupted": syscall.SIGINT,
		"hangup": syscall.SIGHUP}[l.end]
	if s != 0 {
		require.Eventually(t, func() bool {
			ready, _ := filepath.Glob(filepath.Join(dir, "*.ready"))
			return len(ready) == l.ranks
		}, tier.Patience, 5*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(s))
	}
	late := time.AfterFunc(tier.Patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	left := marked(dir)
	if s == syscall.SIGKILL || s == syscall.SIGHUP { // the keeper ends after the launcher
		require.Eventually(t, func() bool { left = marked(dir); return len(left) == 0 || w.end && len(left) == l.ranks },
			tier.Patience, 5*time.Millisecond)
	}
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	said := regexp.MustCompile(`launch: still running, for it has a session of its own \(setsid\): (.*); end it with: kill`).
		FindSubmatch(text)
	if !w.end {
		require.Empty(t, left, "%s", text)
		require.Nil(t, said, "%s", text)
		return
	}
	require.Len(t, left, l.ranks, "%s", text)
	require.NotNil(t, said, "%s", text)
	for _, pid := range left {
		require.Contains(t, string(said[1]), strconv.Itoa(pid))
	}
}

// A rank that goes on after its own failure does so without what it had left before.
func TestTidy(t *testing.T) {
	c, _ := config(1, "leave once")
	dir := t.TempDir()
	c.Restarts, c.Env = 1, append(c.Env, "DIR="+dir)
	require.NoError(t, Run(t.Context(), c))
	require.Empty(t, marked(dir))
}

// Without a keeper ranks run as well.
func TestDirect(t *testing.T) {
	c, out := config(2, "one fails")
	c.Grace = time.Millisecond
	j := newJob(c)
	j.parent = direct{}
	require.ErrorContains(t, j.run(t.Context()), "rank 1: exit status 3")
	require.Contains(t, out.String(), "launch: killed rank 0: it still ran")
	c.Args = []string{"/nowhere/at/all"}
	j = newJob(c)
	j.parent = direct{}
	require.ErrorIs(t, j.run(t.Context()), os.ErrNotExist)
}

// A keeper that is killed takes the ranks with it, and the job says so.
func TestKeeperKilled(t *testing.T) {
	c, out := config(2, "wait")
	j := newJob(c)
	k := newParent(nil).(*keeper)
	defer k.close()
	j.parent = k
	go func() {
		awaitText(t, out, "ready", 2)
		k.cmd.Process.Kill()
	}()
	require.ErrorIs(t, j.run(context.Background()), errKeeper)
	for _, p := range j.processes {
		require.Eventually(t, func() bool { return errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) || zombie(p.pid) },
			tier.Patience, time.Millisecond)
	}
}
