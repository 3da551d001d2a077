//go:build unix

package matrix

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// A survivor is a rank of TestKills: a process that goes on with all others that live, whatever happens, until it is
// told to end.
type survivor struct {
	number int32 // of the process, for ever
	seed   uint64
	c      *ringo.Comm
	who    []int32 // the processes of c, by rank
	step   int32   // the same on all ranks between steps
	end    atomic.Bool
	ids    chan bootstrap.ID // where the next one comes in
}

// killMain is a survivor's process. What it says: "open", "group LIST", "culprit N", "grow", "recovered TIME", "final
// LIST", "lost WHY".
func killMain() {
	s := &survivor{ids: make(chan bootstrap.ID, 1)}
	number, err := strconv.Atoi(os.Getenv("RINGO_TEST_NUMBER"))
	seed, bad := strconv.ParseUint(os.Getenv("RINGO_TEST_SEED"), 10, 64)
	s.number, s.seed = int32(number), seed
	go func() {
		for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
			if commands.Text() == "end" {
				s.end.Store(true)
			} else if id, err := bootstrap.ParseID(commands.Text()); err == nil {
				s.ids <- id
			}
		}
		os.Exit(5) // the test has ended
	}()
	if err = errors.Join(err, bad); err == nil {
		s.c, err = ringo.OpenEnv(context.Background(), ringo.Config{})
	}
	if err == nil {
		fmt.Println("open")
		err = s.live()
	}
	if err != nil {
		fmt.Println("lost", err)
		os.Exit(3)
	}
}

// live works until all are told to end. After a failure it goes on with those that are left.
func (s *survivor) live() error {
	err := s.meet()
	for {
		over := false
		if err == nil {
			over, err = s.work()
		}
		if over {
			fmt.Println("final", s.who)
			return s.c.Close()
		}
		if err == nil {
			continue
		}
		began := time.Now()
		for err != nil {
			s.blame()
			next, lost := s.c.Shrink(context.Background())
			if lost != nil {
				return fmt.Errorf("%w, after %w", lost, err)
			}
			s.take(next)
			err = s.meet()
		}
		fmt.Println("recovered", time.Since(began))
	}
}

func (s *survivor) take(next *ringo.Comm) {
	_ = s.c.Close()
	s.c, s.who = next, nil
}

// blame says which processes are to blame for the end of the communicator.
func (s *survivor) blame() {
	var e *ringo.Error
	err := s.c.Failure()
	if errors.As(err, &e) && len(s.who) == s.c.Size() && !strings.Contains(err.Error(), "Shrink was called") {
		// by one that could not grow
		for _, r := range e.Culprits {
			fmt.Println("culprit", s.who[r], err)
		}
	}
}

// meet has all ranks of a new communicator know each other, and the newest step.
func (s *survivor) meet() error {
	who, newest := make([]int32, s.c.Size()), []int32{s.step}
	if err := ringo.AllGather(s.c, who, []int32{s.number}); err != nil {
		return err
	}
	s.who = who
	fmt.Println("group", who)
	err := ringo.AllReduce(s.c, newest, ringo.Max)
	s.step = newest[0]
	return err
}

// work is a step: the same of all ranks. The last one is over.
func (s *survivor) work() (over bool, err error) {
	wants := []int32{0}
	if s.end.Load() {
		wants[0] = 1
	}
	if err := ringo.AllReduce(s.c, wants, ringo.Max); err != nil || wants[0] == 1 {
		return err == nil, err
	}
	s.step++
	dice := rand.New(rand.NewPCG(s.seed, uint64(s.step)))
	switch {
	case s.c.Size() < survivors && dice.IntN(20) == 0:
		return false, s.grow()
	case dice.IntN(5) == 0:
		return false, s.split(dice.IntN(3) + 1)
	}
	return false, s.sum(s.c, 1<<dice.IntN(19))
}

// sum adds up ones.
func (s *survivor) sum(c *ringo.Comm, n int) error {
	ones := slices.Repeat([]int32{1}, n)
	err := ringo.AllReduce(c, ones, ringo.Sum)
	if err == nil && slices.ContainsFunc(ones, func(x int32) bool { return int(x) != c.Size() }) {
		fmt.Println("lost: a wrong sum")
		os.Exit(4)
	}
	return err
}

// split has parts of the ranks add up.
func (s *survivor) split(parts int) error {
	part, err := s.c.Split(context.Background(), s.c.Rank()%parts, 0)
	if err != nil {
		return err
	}
	err = s.sum(part, 1000)
	for err != nil && s.c.Failure() == nil { // the process that died was of s.c too
		time.Sleep(time.Millisecond)
	}
	return errors.Join(err, part.Close())
}

// grow takes in a process that the test starts.
func (s *survivor) grow() error {
	var id *bootstrap.ID
	if s.c.Rank() == 0 {
		fmt.Println("grow", s.c.Size())
		at := <-s.ids
		id = &at
	}
	next, err := s.c.Grow(context.Background(), id, s.c.Size()+1)
	if err == nil {
		s.take(next)
		err = s.meet()
	}
	return err
}
