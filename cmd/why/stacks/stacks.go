// Package stacks reads where processes stand, from the output of "py-spy dump", of gdb with "thread apply all bt" or
// "py-bt", and of Python's faulthandler. A stack belongs to the process whose number it shows, or to the rank in its
// file's name, "..._rank_3". It is part of the command ringo, and nothing here is promised to other modules.
package stacks

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/internal/given"
)

var (
	process  = regexp.MustCompile(`(?m)^Process (\d{1,9}): `)
	attached = regexp.MustCompile(`(?m)^(?:Attaching to process|\[?Inferior 1 \[process|Attaching to program: .*, process) (\d{1,9})`)
	spyFrame = regexp.MustCompile(`^ {4,}(\S.*?) \(([^()]+?)(?::(\d+))?\)$`)
	pyFrame  = regexp.MustCompile(`^ *File "([^"]+)", line (\d+),? in (.+)$`)
	cFrame   = regexp.MustCompile(`^#\d+ +(?:0x[0-9a-f]+ in )?([A-Za-z_][\w:~]*)`)
	thread   = regexp.MustCompile(`^(?:Thread|Current thread) (?:0x[0-9a-fA-F]+|\d+)`)
	lwp      = regexp.MustCompile(`LWP (\d{1,9})\)`)
	inName   = regexp.MustCompile(`rank[_.-]?(\d{1,6})`)
)

// Is reports whether a file that begins with head has stacks.
func Is(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	spy := process.Match(head) && bytes.Contains(head, []byte("\nThread "))
	gdb := bytes.Contains(head, []byte("\n#0 ")) || bytes.HasPrefix(head, []byte("#0 "))
	return spy || gdb && (bytes.Contains(head, []byte("(LWP ")) || bytes.Contains(head, []byte("Thread "))) ||
		bytes.Contains(head, []byte("(most recent call first):\n  File "))
}

const (
	maxLine  = 4 << 10
	maxHints = 1 << 17
)

// Read reads files: one hint for each process in them. Files that cannot be read are named in skipped.
func Read(files ...string) (hints []hang.Hint, skipped []error) {
	for _, file := range files {
		b, err := given.Read(file)
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		hints = append(hints, parse(file, b)...)
	}
	return hints[:min(len(hints), maxHints)], skipped
}

// A stack is where one thread stands.
type stack struct {
	main  bool
	where string // the innermost line of the program's own code
	does  string // what the library frames within that line do
	c     string // the innermost telling function of C
	lwp   int    // number of the thread, 0 if not known
	any   bool   // a frame was read
}

// parse returns a hint for each process in a file.
func parse(file string, b []byte) (hints []hang.Hint) {
	rank := -1
	if m := inName.FindStringSubmatch(strings.ToLower(filepath.Base(file))); m != nil {
		rank, _ = strconv.Atoi(m[1])
	}
	pid := 0
	var all []stack
	one := stack{}
	end := func() {
		if one.any {
			all = append(all, one)
		}
		one = stack{}
	}
	flush := func() {
		end()
		if text := best(all, pid); text != "" && len(hints) < maxHints {
			hints = append(hints, hang.Hint{Rank: rank, Pid: pid, Stack: given.Printable(text)})
		}
		all = nil
	}
	for raw := range bytes.Lines(b) {
		line := strings.TrimRight(string(raw[:min(len(raw), maxLine)]), "\r\n")
		if m := process.FindStringSubmatch(line); m != nil {
			flush()
			pid, _ = strconv.Atoi(m[1])
			continue
		}
		if m := attached.FindStringSubmatch(line); m != nil {
			pid, _ = strconv.Atoi(m[1])
			continue
		}
		if thread.MatchString(line) {
			end()
			one.main = strings.Contains(line, "MainThread") || strings.HasPrefix(line, "Thread 1 (") ||
				strings.HasPrefix(line, "Current thread")
			if m := lwp.FindStringSubmatch(line); m != nil {
				one.lwp, _ = strconv.Atoi(m[1])
			}
			continue
		}
		one.frame(line)
	}
	flush()
	return hints
}

// frame reads a frame, the innermost first.
func (s *stack) frame(line string) {
	if m := cFrame.FindStringSubmatch(line); m != nil {
		s.any = true
		if s.c == "" && telling(m[1]) {
			s.c = m[1]
		}
		return
	}
	m := pyFrame.FindStringSubmatch(line)
	if m != nil {
		m = []string{"", m[3], m[1], m[2]}
	} else if m = spyFrame.FindStringSubmatch(line); m == nil {
		return
	}
	s.any = true
	if s.where != "" { // frames outside of that line do not matter
		return
	}
	n, _ := strconv.Atoi(m[3])
	s.where = hang.Where(m[2], n, m[1])
	if s.does == "" {
		s.does = does(m[2], m[1])
	}
}

// telling reports whether a function's name tells what a process waits for.
func telling(function string) bool {
	return strings.HasPrefix(function, "nccl") || strings.HasPrefix(function, "cuda") ||
		len(function) > 2 && strings.HasPrefix(function, "cu") && function[2] >= 'A' && function[2] <= 'Z'
}

// does is what a function of a library does, if it is known to take long, else "".
func does(file, function string) string {
	switch {
	case strings.Contains(file, "utils/data/") || strings.HasSuffix(file, "dataloader.py"):
		return "in the data loader"
	case strings.Contains(file, "_dynamo/convert_frame") || strings.Contains(file, "_inductor/") ||
		strings.Contains(file, "triton/"):
		return "compiling"
	case strings.HasSuffix(file, "torch/serialization.py") || strings.Contains(file, "distributed/checkpoint") ||
		strings.HasSuffix(file, "safetensors/torch.py"):
		return "reading or writing a checkpoint"
	case function == "synchronize" && strings.Contains(file, "cuda"):
		return "waiting for its GPU"
	case (function == "new_group" || function == "_new_process_group_helper" || function == "_store_based_barrier") &&
		strings.HasSuffix(file, "distributed_c10d.py"):
		return "making a group"
	case strings.HasSuffix(file, "gc.py"):
		return "collecting garbage"
	}
	return ""
}

// best is where the main thread stands, or else the first thread whose stack tells something.
func best(all []stack, pid int) string {
	found := -1
	for i := range all {
		if all[i].text() == "" {
			continue
		}
		if all[i].main || pid > 0 && all[i].lwp == pid {
			found = i
			break
		}
		if found < 0 {
			found = i
		}
	}
	if found < 0 {
		return ""
	}
	return all[found].text()
}

func (s *stack) text() string {
	text := s.where
	if s.c != "" {
		if text != "" {
			text += ", "
		}
		text += "in " + s.c
	}
	if s.does != "" {
		if text != "" {
			text += ", "
		}
		text += s.does
	}
	return text
}
