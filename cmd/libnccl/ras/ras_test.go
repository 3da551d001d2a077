package ras

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo/cmd/why/hang"
	why "github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// A job is some processes, which are agents of this one.
type job struct {
	addr   string
	agents []*Agent
	first  []*Lease // of each process
	all    []*Lease
}

// newJob begins processes one after the other, which all want the same port.
func newJob(t *testing.T, n int, change ...func(*Options)) *job {
	j := &job{addr: freeport.Addr(t)}
	for range n {
		o := Options{Addr: j.addr, Version: 22809, Log: slog.New(slog.DiscardHandler)}
		for _, f := range change {
			f(&o)
		}
		a := New(o)
		j.agents = append(j.agents, a)
		j.first = append(j.first, a.Lease("127.0.0.1:1"))
	}
	j.all = append(j.all, j.first...)
	t.Cleanup(j.end)
	return j
}

func (j *job) end() {
	for _, l := range j.all {
		l.End()
	}
}

// comm has processes be the ranks of a communicator, each of which has called so many all-reduces.
func (j *job) comm(id string, processes []int, counts ...uint64) []*Lease {
	var cards [][]byte
	for _, p := range processes {
		c := j.first[p].Card(p, p)
		cards = append(cards, c.Encode())
	}
	var leases []*Lease
	for r, p := range processes {
		l := j.agents[p].Lease("")
		l.Serve(&Member{Comm: id, Rank: r, Size: len(processes), Cards: cards, Now: func() (n Now) {
			n.Counts[4] = counts[r]
			return n
		}})
		leases = append(leases, l)
	}
	j.all = append(j.all, leases...)
	return leases
}

// says sends commands to an address and returns the whole answer.
func says(t testing.TB, addr string, commands ...string) string {
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(tier.Patience))
	_, err = io.WriteString(c, strings.Join(commands, "\n")+"\n")
	require.NoError(t, err)
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(b)
}

// reports is what ringo why makes of an answer.
func reports(t testing.TB, text string) *why.Report {
	all, err := why.Parse([]byte(text))
	require.NoError(t, err, text)
	require.Len(t, all, 1)
	return &all[0]
}

// TestStatus: every process answers for all communicators of the job, also for those of other processes only, as text
// and as JSON; and ringo why names the rank that has called less.
func TestStatus(t *testing.T) {
	j := newJob(t, 4)
	j.comm("world", []int{0, 1, 2, 3}, 7, 7, 6, 7)
	j.comm("row", []int{2, 3}, 5, 5)
	for _, format := range []string{"json", "text"} {
		hello, answer, _ := strings.Cut(says(t, j.addr, "CLIENT PROTOCOL 2", "set format "+format, "VERBOSE STATUS\r"),
			"OK\n")
		require.Equal(t, "SERVER PROTOCOL 2\n", hello)
		r := reports(t, answer)
		a := hang.Judge(r.Job("RAS"))
		require.Equal(t, []int{2}, a.Culprits, answer)
		require.Contains(t, a.Sentence, "never called AllReduce #7", format)
	}
	answer := says(t, j.addr, "SET FORMAT JSON", "STATUS")
	r := reports(t, strings.TrimPrefix(answer, "OK\n"))
	require.Equal(t, "2.28.9", r.Version)
	require.Len(t, r.Comms, 2)
	require.Equal(t, 4, r.Comms[0].Size)
	require.Len(t, r.Comms[0].Ranks, 4)
	require.Equal(t, map[string]int64{"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 5},
		r.Comms[1].Ranks[0].Counts)
	require.Equal(t, os.Getpid(), r.Comms[1].Ranks[1].Pid)
}

// The text is what NCCL's RAS prints, column by column.
func TestText(t *testing.T) {
	x := &Survey{Took: 12 * time.Millisecond}
	c := Comm{ID: "world", Size: 8}
	for i := range 8 {
		card := Card{Host: fmt.Sprint("10.0.0.", 1+i/4), Pid: 100 + i, Device: i % 4, NVML: i % 4}
		card.Key[0] = byte(i)
		r := Rank{Rank: i, Card: card, Device: i % 4, NVML: i % 4}
		r.Now.Counts[4] = 10
		p := Process{Card: card, Devices: []int{i % 4}}
		switch i {
		case 2:
			r.Now.Counts[4] = 9
		case 5:
			r.Heard, p.Heard = silent, silent
			x.Timeouts = 1
		case 6:
			r.Now.Async = 1
		}
		if r.Heard == silent {
			c.Missing = append(c.Missing, r)
		} else {
			c.Ranks = append(c.Ranks, r)
		}
		x.Processes = append(x.Processes, p)
	}
	x.Comms = []Comm{c}
	hash, _, _ := c.Hash()
	s := &server{o: Options{Version: 22809, Driver: func() int { return 13010 }}}
	require.Equal(t, fmt.Sprintf(`NCCL version 2.28.9 compiled with CUDA 13.1
CUDA runtime version 13010, driver version 13010

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.01s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2       3-4         8         7   RUNNING  INCOMPLETE,ERROR,MISMATCH

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 105 on node 10.0.0.2 managing GPU 1

#0-0 (%016[1]x) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 5 -- GPU 1 managed by process 105 on node 10.0.0.2

#0-0 (%016[1]x) ERROR
  Asynchronous error on 1 rank
  Rank 6 reported Unhandled CUDA error -- GPU 2 managed by process 106 on node 10.0.0.2

Warnings
========

TIMEOUT
  Encountered 1 communication timeout while gathering communicator data

#0-0 (%016[1]x) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 10
  Rank 2 has launched up to operation 9 -- GPU 2 managed by process 102 on node 10.0.0.1

`, hash), s.text(x, false))
}

// TestUnevenJob: if numbers of processes or GPUs differ among nodes, the text has a table of them, and totals.
func TestUnevenJob(t *testing.T) {
	x := &Survey{}
	for i, p := range []Process{{Devices: []int{0}}, {Devices: []int{1}}, {Devices: []int{0, 1}, Heard: dead}} {
		p.Card = Card{Host: fmt.Sprint("10.0.0.", 1+i/2), Pid: 100 + i}
		x.Processes = append(x.Processes, p)
	}
	text := (&server{}).text(x, true)
	require.Contains(t, text, "      1          1\n      1          2\n")
	require.Contains(t, text, "                 2            1\n                 1            2\n")
	require.Contains(t, text, "(total)    (total)      (total)\n      2          3            4\n")
	require.Contains(t, text,
		"DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 102 on node 10.0.0.2 "+
			"managing GPUs 0,1\n")
	require.Contains(t, text, "No communicator data collected!\n")
}

// The processes of a job share the port: while one of them lives it answers. Another job that wants it has it
// afterwards.
func TestDoor(t *testing.T) {
	j := newJob(t, 3)
	leases := j.comm("world", []int{0, 1, 2}, 1, 1, 1)
	for _, s := range []*server{j.first[1].server, j.first[2].server} {
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.door != nil
		}, tier.Patience, time.Millisecond)
	}
	other := New(Options{Addr: j.addr, Log: slog.New(slog.DiscardHandler)}).Lease("")
	defer other.End()
	card := other.Card(0, 0)
	other.Serve(&Member{Comm: "theirs", Size: 1, Cards: [][]byte{card.Encode()}, Now: func() Now { return Now{} }})
	for p := range 2 {
		leases[p].End()
		j.first[p].End()
		answer := says(t, j.addr, "SET FORMAT JSON", "STATUS")
		r := reports(t, strings.TrimPrefix(answer, "OK\n"))
		require.Len(t, r.Comms, 1)
		require.Len(t, r.Comms[0].Missing, p+1, answer)
		require.False(t, r.Comms[0].Missing[0].Status.Silent, "it has left, and is not taken for dead: %s", answer)
		require.Contains(t, says(t, j.addr, "STATUS"), "have different status")
	}
	leases[2].End()
	j.first[2].End()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", j.addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, tier.Patience, 10*time.Millisecond)
	require.Contains(t, says(t, j.addr, "STATUS"), "1   RUNNING      OK")
}

// TestSilent: the first survey waits for a silent process as long as the client asks, later ones less; the answer names
// the process.
func TestSilent(t *testing.T) {
	j := newJob(t, 3)
	leases := j.comm("world", []int{0, 1, 2}, 1, 1, 1)
	stuck := make(chan struct{})
	answers := sync.OnceFunc(func() { close(stuck) })
	t.Cleanup(answers)
	cards := [][]byte{}
	for p, l := range j.first {
		c := l.Card(p, p)
		cards = append(cards, c.Encode())
	}
	leases[1].Serve(&Member{Comm: "world", Rank: 1, Size: 3, Cards: cards, Now: func() Now { <-stuck; return Now{} }})
	s := j.first[0].server
	for range 2 {
		x := s.survey(50 * time.Millisecond)
		require.Equal(t, 1, x.Timeouts)
		require.Len(t, x.Comms[0].Missing, 1)
		require.Equal(t, silent, x.Comms[0].Missing[0].Heard)
		r := reports(t, s.json(x))
		a := hang.Judge(r.Job("RAS"))
		require.Equal(t, hang.Silent, a.Reason, a.Sentence)
		require.Equal(t, []int{1}, a.Culprits)
	}
	require.True(t, s.slow[x1(j)])
	answers()
	x := s.survey(tier.Patience)
	require.Zero(t, x.Timeouts)
	require.Len(t, x.Comms[0].Ranks, 3)
	require.Empty(t, s.slow)
}

func x1(j *job) string { return j.first[1].server.card.process() }

// TestDied: the living members of a communicator report which rank has died.
func TestDied(t *testing.T) {
	j := newJob(t, 2)
	cards := [][]byte{}
	for p, l := range j.first {
		c := l.Card(p, p)
		cards = append(cards, c.Encode())
	}
	j.first[0].Serve(&Member{Comm: "world", Size: 2, Cards: cards,
		Now: func() Now { return Now{Async: 6, Died: []int{1}} }})
	j.first[1].End()
	x := j.first[0].server.survey(tier.Patience)
	require.Equal(t, dead, x.Comms[0].Missing[0].Heard)
	require.Contains(t, j.first[0].server.text(x, false), "1 job process is considered dead")
	require.Contains(t, j.first[0].server.json(x), `"considered_dead": true`)
}

// TestCommands: commands are NCCL's, in upper or lower case; a wrong one is an error, and the connection stays.
func TestCommands(t *testing.T) {
	j := newJob(t, 1)
	c, err := net.Dial("tcp", j.addr)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for _, one := range [][2]string{
		{"client protocol 99", "SERVER PROTOCOL 2"}, {"TIMEOUT 3", "OK"}, {"timeout x", "ERROR: Invalid timeout value x"},
		{"timeout -1", "ERROR: Invalid timeout value -1"},
		{"timeout 0", "OK"}, {"Set Format TEXT", "OK"}, {"set format xml", "ERROR: Invalid format xml"},
		{"hello", "ERROR: Unknown command hello"},
		{"", "ERROR: Unknown command "}, {"monitor lifecycle,all,most", "ERROR: Invalid event group 'most'"},
	} {
		_, err := io.WriteString(c, one[0]+"\n")
		require.NoError(t, err)
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, one[1]+"\n", line, one[0])
	}
}

// A client in monitor mode hears of processes that come, and of those that die.
func TestMonitor(t *testing.T) {
	t.Cleanup(func() { look = time.Second })
	look = 50 * time.Millisecond
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			j := newJob(t, 3)
			var died atomic.Bool
			cards := [][]byte{}
			for p, l := range j.first {
				c := l.Card(p, p)
				cards = append(cards, c.Encode())
			}
			j.comm("pair", []int{0, 1}, 0, 0)
			c, err := net.Dial("tcp", j.addr)
			require.NoError(t, err)
			defer c.Close()
			fmt.Fprintf(c, "SET FORMAT %s\nMONITOR\n", format)
			in := bufio.NewReader(c)
			for range 2 {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "OK\n", line)
			}
			wait := func(word string) {
				c.SetReadDeadline(time.Now().Add(tier.Patience))
				for line := ""; !strings.Contains(line, word); {
					line, err = in.ReadString('\n')
					require.NoError(t, err)
				}
			}
			l := j.agents[0].Lease("")
			j.all = append(j.all, l)
			l.Serve(&Member{Comm: "world", Size: 3, Cards: cards, Now: func() (n Now) {
				if died.Load() {
					n.Died = []int{2}
				}
				return n
			}})
			wait("PEER_NEW")
			died.Store(true)
			j.first[2].End()
			wait("PEER_DEAD")
		})
	}
}

// Hostile clients and strangers get nothing, cost little, and leave nothing behind.
func TestHostile(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	files := descriptors(t)
	j := newJob(t, 2)
	j.comm("world", []int{0, 1}, 1, 1)
	var held []net.Conn
	dial := func(network, addr string) net.Conn {
		c, err := net.Dial(network, addr)
		require.NoError(t, err)
		held = append(held, c)
		return c
	}
	long := dial("tcp", j.addr)
	_, err := long.Write([]byte(strings.Repeat("x", 4*maxLine)))
	require.NoError(t, err)
	long.SetReadDeadline(time.Now().Add(tier.Patience))
	_, err = long.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "a line without an end is hung up on")
	stranger := dial("unix", j.first[1].server.card.socket())
	_, err = stranger.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\n", 10)))
	require.NoError(t, err)
	stranger.SetReadDeadline(time.Now().Add(tier.Patience))
	_, err = io.ReadAll(stranger)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	wrong := j.first[1].server.card
	wrong.Key[0]++ // another key has another socket
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	_, err = j.first[0].server.ask(ctx, &wrong, nil)
	require.True(t, refused(err), err)
	var wg sync.WaitGroup
	for range 2 * maxClients { // silent ones; those above the bound are hung up on
		dial("tcp", j.addr)
	}
	for _, c := range held {
		c.Close()
	}
	for range 8 {
		wg.Go(func() {
			for range 4 {
				c, err := net.Dial("tcp", j.addr)
				if err != nil {
					continue
				}
				fmt.Fprint(c, "STATUS\n")
				c.Close() // before the answer
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { // there is room again
		c, err := net.Dial("tcp", j.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprint(c, "STATUS\n")
		b, _ := io.ReadAll(c)
		return strings.Contains(string(b), "RUNNING")
	}, tier.Patience, time.Millisecond)
	j.end()
	require.Eventually(t, func() bool { return descriptors(t) <= files }, tier.Patience, time.Millisecond, "%d before",
		files)
}

// descriptors is how many files and sockets this process has open. What the runtime itself opens once counts from the
// first time on.
func descriptors(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the poller's
	require.NoError(t, err)
	l.Close()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// Between machines agents ask over TCP, under TLS if the job wants that.
func TestBetweenMachines(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", encrypted), func(t *testing.T) {
			j := newJob(t, 2, func(o *Options) {
				if encrypted {
					var err error
					o.TLS, err = secure.New("", "", "")
					require.NoError(t, err)
				}
			})
			far := j.first[1].server
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			pending := auth.NewPending(8, tier.Patience, auth.NewLog(slog.New(slog.DiscardHandler)))
			go pending.Serve(l, func(c net.Conn) { far.answer(pending, c) })
			cards := [][]byte{}
			for i, first := range j.first {
				c := first.Card(i, i)
				if i == 1 {
					c.Machine, c.Port = "another", l.Addr().(*net.TCPAddr).Port
				}
				cards = append(cards, c.Encode())
			}
			for i, first := range j.first {
				first.Serve(&Member{Comm: "world", Rank: i, Size: 2, Cards: cards, Now: func() Now { return Now{} }})
			}
			x := j.first[0].server.survey(tier.Patience)
			require.Len(t, x.Comms[0].Ranks, 2)
		})
	}
}

// FuzzTake: entries of other processes are checked, and wrong ones are left out.
func FuzzTake(f *testing.F) {
	f.Add("a", 0, 2, []byte("x"), 1)
	f.Fuzz(func(t *testing.T, id string, rank, size int, card []byte, n int) {
		s := &server{o: Options{Log: slog.New(slog.DiscardHandler)}, members: map[*Lease]*Member{}}
		s.began, s.stop = context.WithCancel(t.Context())
		s.stop() // nobody is asked
		y := newTally(s)
		cards := make([][]byte, max(0, min(n, 100)))
		for i := range cards {
			cards[i] = card
		}
		e := entry{Comm: id, Rank: rank, Size: size, Cards: cards, Now: Now{Async: rank, Died: []int{n}}}
		y.take(s.began, time.Second, report{Ranks: []entry{e}})
		for ; y.under > 0; y.under-- {
			r := <-y.replies
			y.processes[r.process].Heard = r.heard
		}
		var x Survey
		y.compile(&x)
		s.text(&x, true)
		s.json(&x)
	})
}

func FuzzCard(f *testing.F) {
	c := Card{Host: "10.0.0.1", Machine: "m", Pid: 7, Port: 9, Device: 1, NVML: 2}
	f.Add(c.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCard(b)
		if err != nil {
			return
		}
		again, err := ParseCard(c.Encode())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

// BenchmarkStatus is one question and its answer, to a job of 8 processes.
func BenchmarkStatus(b *testing.B) {
	j := &job{addr: "127.0.0.1:0"}
	for range 8 {
		a := New(Options{Addr: j.addr, Version: 22809, Log: slog.New(slog.DiscardHandler)})
		j.agents = append(j.agents, a)
		j.first = append(j.first, a.Lease("127.0.0.1:1"))
	}
	defer j.end()
	j.comm("world", []int{0, 1, 2, 3, 4, 5, 6, 7}, 1, 1, 1, 1, 1, 1, 1, 1)
	addr := j.first[0].server.door.Addr().String()
	for b.Loop() {
		says(b, addr, "STATUS")
	}
}
