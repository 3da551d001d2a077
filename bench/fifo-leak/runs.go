package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ringEnv are the variables that make a library's FIFO as long as a word says, and leave no
// room for work in a kernel's arguments, so that every launch goes through the FIFO.
func ringEnv(library, word string) ([]string, error) {
	prefix, n, args := "RINGO_", 1, 1 // sizes that are too small become the smallest possible
	if library == "nccl" {
		prefix, n, args = "NCCL_", 64<<10, 256
	}
	switch word {
	case "default":
		return nil, nil
	case "smallest":
	default:
		var err error
		if n, err = strconv.Atoi(word); err != nil || n < 1 {
			return nil, fmt.Errorf("-ring is %q, want default, smallest or a number of bytes", word)
		}
	}
	return []string{fmt.Sprintf("%sWORK_FIFO_BYTES=%d", prefix, n), fmt.Sprintf("%sWORK_ARGS_BYTES=%d", prefix, args)}, nil
}

// all carries out every run in a process of its own, and prints how each went. It is an error
// if a run of Ringo fails.
func all(o *options, out io.Writer) error {
	fmt.Fprintf(out, "%d %s GPUs; leak: 2 all-reduces of 100,000 bfloat16, one captured and never replayed, %d of "+
		"49,000; group: %d all-reduces in one group\n",
		o.gpus, pick(o.device == "emu", "emulated", "real"), o.calls, o.group)
	if o.calls < fullCalls || o.group < fullGroup {
		fmt.Fprintf(out, "scaled down from %d and %d: emulated GPUs are slow; -n %[1]d -group %[2]d has all\n",
			fullCalls, fullGroup)
	}
	libraries := []string{"ringo"}
	if o.peer != "" {
		libraries = append(libraries, o.peer)
	}
	failed := 0
	for _, program := range strings.Split(o.programs, ",") {
		for _, ring := range strings.Split(o.rings, ",") {
			for _, library := range libraries {
				verdict, ok := run(o, library, program, ring)
				fmt.Fprintf(out, "%-6s %-6s ring %-9s %s\n", program, library, ring, verdict)
				if !ok && library == "ringo" {
					failed++
				}
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d runs of ringo failed", failed)
	}
	return nil
}

// run starts a child for one run and kills it at the limit.
func run(o *options, library, program, ring string) (verdict string, ok bool) {
	env, err := ringEnv(library, ring)
	if err != nil {
		return err.Error(), false
	}
	self, err := os.Executable()
	if err != nil {
		return err.Error(), false
	}
	cmd := exec.Command(self, "-child", library, "-device", o.device, "-g", strconv.Itoa(o.gpus), "-n",
		strconv.Itoa(o.calls),
		"-group", strconv.Itoa(o.group), "-program", program, "-nccl", o.library, "-limit", o.limit.String())
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err.Error(), false
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return err.Error(), false
	}
	killed := time.AfterFunc(o.limit, func() { cmd.Process.Kill() })
	at, last := "at the start", ""
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			at = "at " + text
		} else {
			last = lines.Text()
		}
	}
	err = cmd.Wait()
	if !killed.Stop() {
		return fmt.Sprintf("STALLED %s: killed after %v", at, time.Since(begun).Round(time.Millisecond)), false
	}
	if err != nil {
		return strings.TrimSpace(fmt.Sprintf("FAILED %s: %v: %s", at, err, strings.TrimSpace(said.String()))), false
	}
	return "ok: " + last, true
}

// child carries out one run and reports it in lines.
func child(o *options, out io.Writer) (err error) {
	m, err := openMachine(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	begun := time.Now()
	switch o.programs {
	case "leak":
		err = m.leak(o.calls, out)
	case "group":
		err = m.group(o.group, out)
	}
	if err != nil {
		return err
	}
	took := time.Since(begun)
	n := pick(o.programs == "leak", o.calls, o.group)
	_, err = fmt.Fprintf(out, "%d all-reduces in %v, %.1f µs each, results right%s\n", n, took.Round(time.Millisecond),
		float64(took.Microseconds())/float64(n), m.counters())
	return err
}
