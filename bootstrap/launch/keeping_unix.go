//go:build unix

package launch

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A keeping is the work of a keeper's process. One goroutine starts, signals and waits for all children. So no other
// process can have got the number of a child when it is signalled.
type keeping struct {
	conn     *net.UnixConn
	out      *json.Encoder
	children chan os.Signal // a token when a child's state may have changed
	alive    map[int]*kept  // by pid
	groups   map[int]int    // by number: the process groups of those that have ended
	over     bool           // the job has ended, and what was left
}

// A kept process is a child by order of the launcher.
type kept struct {
	number, pid int
	here        bool // in the launcher's group
}

// An orphan is a child by the death of its parent: some rank has started it. Without procfs it is a process group.
type orphan struct {
	leftover
	group int
	away  bool // in a session of its own
	dying bool // its first thread has ended. Others may not have, and then its children are not yet here
}

func (o orphan) same(p orphan) bool { return o.Pid == p.Pid }

func newKeeping(conn *net.UnixConn) *keeping {
	k := &keeping{conn: conn, out: json.NewEncoder(conn), children: make(chan os.Signal, 1), alive: map[int]*kept{},
		groups: map[int]int{}}
	signal.Notify(k.children, syscall.SIGCHLD)
	return k
}

// run carries out orders until the launcher has ended, and ends what is left then. It runs on the thread with which
// this process ends, as the ranks' death signals need.
func (k *keeping) run() {
	outlive()
	adopt()
	type arrival struct {
		order
		files []int
	}
	orders := make(chan arrival)
	go func() {
		defer close(orders)
		for {
			o, files, err := receive(k.conn)
			if err != nil {
				return
			}
			orders <- arrival{o, files}
		}
	}()
	poll := time.NewTicker(quietTime)
	defer poll.Stop()
	if procfs {
		poll.Stop()
	}
	for {
		select {
		case <-k.children:
			k.reap()
		case <-poll.C:
			k.forget()
		case o, ok := <-orders:
			if !ok {
				if !k.over {
					k.killed()
				}
				return
			}
			k.obey(o.order, o.files)
		}
	}
}

// say sends a report. Nobody is left to tell if that fails.
func (k *keeping) say(r report) { _ = k.out.Encode(r) }

func (k *keeping) obey(o order, files []int) {
	switch o.Kind {
	case startOrder:
		k.start(o, files)
	case signalOrder:
		for _, c := range k.alive {
			if c.number == o.Number {
				c.signal(syscall.Signal(o.Signal))
			}
		}
	case tidyOrder:
		k.tidy(k.groups[o.Number])
	case endOrder:
		k.over = true
		k.say(report{Kind: overReport, Left: k.sweep(leftTime)})
	}
}

func (k *keeping) start(o order, files []int) {
	fds := make([]uintptr, len(files))
	for i, fd := range files {
		fds[i] = uintptr(fd)
	}
	sys := attributes(o.Group != 0)
	sys.Pgid = o.Group
	sys.Setpgid = true
	pid, err := syscall.ForkExec(o.Path, split(o.Args), &syscall.ProcAttr{Env: split(o.Env), Files: fds, Sys: sys})
	for _, fd := range files {
		unix.Close(fd)
	}
	r := report{Kind: startedReport, Number: o.Number, Pid: pid}
	if err != nil {
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = syscall.EINVAL
		}
		r.Errno = int(errno)
	} else {
		k.alive[pid] = &kept{number: o.Number, pid: pid, here: o.Group != 0}
	}
	k.say(r)
}

// signal sends s to the process and its group. A process that has left its group gets it alone.
func (c *kept) signal(s syscall.Signal) {
	if c.here {
		_ = unix.Kill(c.pid, s)
		return
	}
	_ = unix.Kill(-c.pid, s)
	if g, err := unix.Getpgid(c.pid); err == nil && g != c.pid {
		_ = unix.Kill(c.pid, s)
	}
}

// tidy sends SIGTERM to what is left of a process group, 0 for none.
func (k *keeping) tidy(group int) {
	if group == 0 {
		return
	}
	for _, p := range k.orphans() {
		if p.group == group && !p.away {
			_ = unix.Kill(p.Pid, unix.SIGTERM)
		}
	}
}

// reap waits for all children that have ended or stopped, and reports those that were ordered. It reports whether
// children are left.
func (k *keeping) reap() (some bool) {
	for {
		var s unix.WaitStatus
		pid, err := unix.Wait4(-1, &s, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || pid <= 0:
			return err == nil
		}
		c := k.alive[pid]
		switch {
		case c == nil:
		case s.Stopped():
			k.say(report{Kind: haltedReport, Number: c.number, Stop: unix.SignalName(s.StopSignal())})
		case s.Continued():
			k.say(report{Kind: haltedReport, Number: c.number})
		default:
			delete(k.alive, pid)
			if !c.here && unix.Kill(-pid, 0) == nil {
				k.groups[c.number] = pid
			}
			r := report{Kind: endedReport, Number: c.number}
			if s.Signaled() {
				r.Signal = int(s.Signal())
			} else {
				r.Status = s.ExitStatus()
			}
			k.say(r)
		}
	}
}

// forget drops groups without members, whose numbers other processes may get.
func (k *keeping) forget() {
	for number, g := range k.groups {
		if unix.Kill(-g, 0) != nil {
			delete(k.groups, number)
		}
	}
}

// killed ends everything: the launcher was killed.
func (k *keeping) killed() {
	for _, c := range k.alive {
		c.signal(unix.SIGKILL)
	}
	clear(k.alive) // from now on they are like all others
	fmt.Fprint(os.Stderr, k.sweep(0).text("ranks", false))
}

// sweep ends the orphans: by SIGTERM, and after d by SIGKILL; by SIGKILL alone if d is 0.
func (k *keeping) sweep(d time.Duration) (l leftovers) {
	if !k.reap() && procfs {
		return l
	}
	k.await(quietTime, func(all []orphan) bool { return len(all) == 0 })
	_, rest := k.divided()
	if d > 0 && len(rest) > 0 {
		l.Ended = living(rest)
		for _, p := range rest {
			_ = unix.Kill(p.Pid, unix.SIGTERM)
			_ = unix.Kill(p.Pid, unix.SIGCONT)
		}
		k.await(d, noneHere)
	}
	// What has no parent any more comes here in its turn.
	for end := time.Now().Add(killTime); time.Now().Before(end); {
		k.reap()
		if _, rest = k.divided(); len(rest) == 0 {
			break
		}
		for _, p := range rest {
			_ = unix.Kill(p.Pid, unix.SIGKILL)
		}
		k.await(quietTime, func(all []orphan) bool {
			return !slices.ContainsFunc(all, func(p orphan) bool { return slices.ContainsFunc(rest, p.same) })
		})
	}
	away, rest := k.divided()
	l.Away, l.Stuck = living(away), living(rest)
	return l
}

// divided is the orphans: those in sessions of their own, and the rest.
func (k *keeping) divided() (away, rest []orphan) {
	for _, p := range k.orphans() {
		if p.away {
			away = append(away, p)
		} else {
			rest = append(rest, p)
		}
	}
	return away, rest
}

func noneHere(all []orphan) bool {
	return !slices.ContainsFunc(all, func(p orphan) bool { return !p.away })
}

// living is the orphans that are not about to end.
func living(all []orphan) (l []leftover) {
	for _, p := range all {
		if !p.dying {
			l = append(l, p.leftover)
		}
	}
	return l
}

// await waits until the orphans are as they should be, for d at most.
func (k *keeping) await(d time.Duration, done func(all []orphan) bool) {
	late, look := time.After(d), time.NewTicker(quietTime/10)
	defer look.Stop()
	if procfs { // each change is told
		look.Stop()
	}
	for k.reap(); !done(k.orphans()); {
		select {
		case <-k.children:
			k.reap()
		case <-look.C:
			k.forget()
		case <-late:
			return
		}
	}
}

// orphans is the processes that ranks have left to this one.
func (k *keeping) orphans() (all []orphan) {
	if !procfs {
		for _, g := range k.groups {
			all = append(all, orphan{leftover: leftover{-g, "a process group"}, group: g})
		}
		return all
	}
	return slices.DeleteFunc(children(), func(p orphan) bool { return k.alive[p.Pid] != nil })
}
