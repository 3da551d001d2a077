package hangs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What is a set of the things that a scenario leaves behind.
type What uint8

const (
	Dumps What = 1 << iota
	RAS
	Logs
	Stacks
	Everything = Dumps | RAS | Logs | Stacks
)

// Write carries the scenario out, the first time, and writes files into a folder. The files of a scenario are the same
// each time.
func (s *Scenario) Write(dir string, what What) error {
	put := func(name string, b []byte, at time.Time) error {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return err
		}
		return os.Chtimes(name, at, at)
	}
	j := s.job
	if j.r != nil {
		j.run(4 * time.Hour)
		j.r = nil
	}
	at := j.fires()
	if s.well || at == never {
		at = time.Minute
	}
	at += s.late + 200*time.Millisecond
	noise := rand.New(rand.NewPCG(s.seed, 1))
	version := versions[noise.IntN(len(versions))]
	room := []int{24, 60, 2000}[noise.IntN(3)]
	asJSON, old, one, launcher := noise.IntN(3) == 0, noise.IntN(3) == 0, noise.IntN(2) == 0,
		prefixes[noise.IntN(len(prefixes))]
	if s.Kind == "watchdog too short" || s.Kind == "slow, not stuck" { // the time-out is in the dumps since 2.3
		version = versions[3+noise.IntN(len(versions)-3)]
	}
	old = old && len(j.groups) == 1
	for r := range j.ranks {
		k := &j.ranks[r]
		if what&Dumps == 0 || k.died <= at || k.stopped || s.alone >= 0 && s.alone != r ||
			s.lost >= 0 && r/perHost == s.lost {
			continue
		}
		d, when := j.dump(r, version, at, room), j.start.Add(at+k.skew)
		if r == s.spoilt {
			d = j.before(r, version, 6*time.Hour)
			if when = j.start.Add(-5 * time.Hour); s.seed%2 == 0 { // an earlier attempt, copied without the time of its file
				d, when = j.before(r, version, 20*time.Minute), j.start.Add(at)
			}
		}
		b := written(d, asJSON && minor(version) >= 4)
		if r == s.torn { // the disk was full
			b = b[:len(b)/2]
		}
		if err := put(fmt.Sprintf("nccl_trace_rank_%d", r), b, when); err != nil {
			return err
		}
	}
	if s.alone >= 0 {
		return nil
	}
	end := j.start.Add(at)
	if what&RAS != 0 {
		if err := put("ras.out", j.answers(at, old), end); err != nil {
			return err
		}
	}
	if what&Stacks != 0 && s.stacks {
		for r := range j.ranks {
			if err := put(fmt.Sprintf("pyspy-%d.txt", pid(r)), []byte(j.stack(r)), end); err != nil {
				return err
			}
		}
	}
	if what&Logs == 0 {
		return nil
	}
	return s.writeLogs(put, at, one, launcher, noise)
}

func (s *Scenario) writeLogs(put func(string, []byte, time.Time) error, at time.Duration, one bool, launcher string,
	noise *rand.Rand) error {
	j := s.job
	end := j.start.Add(at)
	var ranks [][]string
	for r := range j.ranks {
		ranks = append(ranks, s.lines(r, at, launcher, noise))
	}
	text := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	if !one {
		for r, lines := range ranks {
			if err := put(fmt.Sprintf("log.%d", r), text(lines), end); err != nil {
				return err
			}
		}
		if s.log == nil {
			return nil
		}
		return put("launcher.log", text(s.log), end)
	}
	all := mixed(noise, ranks)
	if noise.IntN(4) == 0 {
		all = tear(noise, all)
	}
	return put("job.log", text(append(all, s.log...)), end)
}

// before is the dump of an earlier run, of which the last call did not end.
func (j *job) before(r int, version string, ago time.Duration) map[string]any {
	was := *j
	was.start = j.start.Add(-ago)
	half := j.ranks[r].calls
	return was.dump(r, version, half[len(half)/2].at+10*time.Microsecond, 2000)
}
