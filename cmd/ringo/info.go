package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/socket"
)

const infoHelp = `usage: ringo info [flags]

Says what this machine has, which GPUs and transports work on it and why others
do not, and which network interface would be used. Environment variables count
as they do in a program.

  -device D      auto: GPUs if there is a driver; cuda: insist; emu: emulated
  -iface NAME    as RINGO_SOCKET_IFNAME: prefixes, ^ excludes, = exact
  -quick         do not try the transports

Examples
  ringo info
  ringo info --device emu
`

func runInfo(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("info")
	iface, quick, device := fs.String("iface", "", ""), fs.Bool("quick", false, ""), fs.String("device", "auto", "")
	rest, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return cli.Usagef("unexpected argument %q", rest[0])
	}
	cfg, err := ringo.Config{Interface: *iface}.FromEnv()
	if err != nil {
		return err
	}
	line := func(key, format string, a ...any) {
		fmt.Fprintf(stdout, "%-12s%s\n", key, fmt.Sprintf(format, a...))
	}
	host, _ := os.Hostname()
	line("ringo", "%s, %s %s/%s", ringo.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	line("host", "%s", host)
	line("cpu", "%s, %d cores", bench.CPU(), runtime.NumCPU())
	for _, f := range memoryFacts() {
		line(f.name, "%s", f.text)
	}
	interfaces(line, cfg.Interface)
	if err := gpus(line, *device, cfg.CUDALibrary); err != nil {
		return err
	}
	line("infiniband", "not looked for: this version has no verbs")
	if *quick {
		return nil
	}
	for _, t := range []struct{ name, transport, network string }{
		{"inproc", "inproc", ""}, {"shm", "shm", ""}, {"unix", "socket", "unix"}, {"tcp", "socket", "tcp"},
	} {
		us, err := try(ctx, ringo.Config{Transport: t.transport, SocketNetwork: t.network, Interface: cfg.Interface, JoinTimeout: 10 * time.Second, Timeout: 10 * time.Second})
		if err != nil {
			line(t.name, "does not work: %v", err)
			continue
		}
		line(t.name, "works: 8 bytes all-reduced by two goroutines in %.2f us", us)
	}
	return nil
}

// A fact is a line about the machine.
type fact struct{ name, text string }

// interfaces lists what is up, and marks where TCP between hosts would go.
func interfaces(line func(key, format string, a ...any), ifName string) {
	chosen, reason := listenAddress(ifName)
	ifs, err := net.Interfaces()
	if err != nil {
		line("interfaces", "cannot be listed: %v", err)
		return
	}
	for _, f := range ifs {
		addrs, err := f.Addrs()
		if err != nil || f.Flags&net.FlagUp == 0 || len(addrs) == 0 {
			continue
		}
		var texts []string
		mark := ""
		for _, a := range addrs {
			texts = append(texts, a.String())
			if p, err := netip.ParsePrefix(a.String()); err == nil && chosen.IsValid() && p.Addr().WithZone("") == chosen.WithZone("") {
				mark = "   <- TCP between hosts goes here: " + reason(f.Name)
			}
		}
		line("interface", "%-10s %s%s", f.Name, strings.Join(texts, " "), mark)
	}
	if !chosen.IsValid() {
		line("interface", "none can be used: %s", reason(""))
	}
}

// listenAddress is where the socket transport listens, and why there.
func listenAddress(ifName string) (netip.Addr, func(iface string) string) {
	t := socket.New(transport.Config{Limits: transport.Limits{SlotBytes: 4096, Slots: 2}}, socket.Options{Network: "tcp", IfName: ifName})
	defer t.Close()
	where, err := t.Listen()
	if err != nil {
		return netip.Addr{}, func(string) string { return err.Error() }
	}
	text, _ := strings.CutPrefix(string(where), "tcp=")
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}, func(string) string { return err.Error() }
	}
	return addr.Addr(), func(iface string) string {
		switch {
		case ifName != "":
			return "the first that " + ifName + " names"
		case strings.HasPrefix(iface, "ib"):
			return "ib* comes first"
		case strings.HasPrefix(iface, "lo"), strings.HasPrefix(iface, "docker"), strings.HasPrefix(iface, "virbr"):
			return "there is nothing better"
		}
		return "the first that is neither docker*, lo* nor virbr*"
	}
}

// try all-reduces 8 bytes between two goroutines and returns the microseconds
// that it takes.
func try(ctx context.Context, cfg ringo.Config) (us float64, err error) {
	comms, err := ringo.OpenLocal(2, cfg)
	if err != nil {
		return 0, err
	}
	const n = 2000
	var errs [2]error
	var wg sync.WaitGroup
	start := time.Now()
	for i, c := range comms {
		wg.Go(func() {
			defer c.Close()
			x := mem.Of(make([]float32, 2))
			call := &ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 2, Type: ringo.Float32}
			for range n {
				if errs[i] = c.Do(call); errs[i] != nil || ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range append(errs[:], ctx.Err()) {
		if err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Microseconds()) / n, nil
}
