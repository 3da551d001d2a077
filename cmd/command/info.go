package command

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

// infoHelp is what "ringo info -h" prints.
const infoHelp = `usage: ringo info [flags]

Says what this machine has, which GPUs and transports work on it and why others
do not, and which network interface would be used. Environment variables count
as they do in a program.

Examples
  ringo info
  ringo info -device emu
  ringo info -quick -json - | jq .gpu.devices

{device iface quick json}
`

// An inventory is the findings of info, as JSON. Each finding is also printed to w at once.
type inventory struct {
	Version    string          `json:"version"`
	Go         string          `json:"go"`
	OS         string          `json:"os"`
	Arch       string          `json:"arch"`
	Host       string          `json:"host"`
	CPU        string          `json:"cpu"`
	Cores      int             `json:"cores"`
	Memory     []fact          `json:"memory,omitempty"`
	Interfaces []netInterface  `json:"interfaces"`
	GPU        *gpuInventory   `json:"gpu,omitempty"`
	NoGPU      string          `json:"no_gpu,omitempty"` // why no GPU can be used
	Networks   []network       `json:"networks"`
	TLS        string          `json:"tls"` // off, by the job's key, by certificates
	Transports []transportTest `json:"transports,omitempty"`

	w io.Writer // text
}

// line writes a line of text.
func (v *inventory) line(key, format string, a ...any) {
	fmt.Fprintf(v.w, "%-12s%s\n", key, fmt.Sprintf(format, a...))
}

// A fact is a line about the machine.
type fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A netInterface is a network interface that is up. Chosen is why TCP between hosts
// goes there, "" if it goes elsewhere.
type netInterface struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	Chosen    string   `json:"chosen,omitempty"`
}

// A network is a kind of network that may connect hosts: its devices on this machine,
// or the reason why it cannot be used.
type network struct {
	Name    string                    `json:"name"`
	Kind    string                    `json:"kind,omitempty"`
	Devices []transport.NetworkDevice `json:"devices,omitempty"`
	Error   string                    `json:"error,omitempty"`
	Chosen  bool                      `json:"chosen,omitempty"` // by this machine alone
}

// A transportTest is the time of an all-reduce of 8 bytes between two goroutines over
// a transport, or the error if it does not work.
type transportTest struct {
	Name  string  `json:"name"`
	Time  float64 `json:"time_us,omitempty"`
	Error string  `json:"error,omitempty"`
}

func runInfo(ctx context.Context, args []string, stdout, _ io.Writer) error {
	fs := flags("info")
	iface, quick, device := fs.String("iface", "", "`NAME` as RINGO_SOCKET_IFNAME: prefixes, ^ excludes, = "+
		"exact"), fs.Bool("quick", false, "do not try the transports"), "auto"
	cli.Word(fs, &device, "device", []string{"auto", "cuda", "emu"}, "device `D` auto: GPUs if there is a "+
		"driver; cuda: insist; emu: emulated")
	file := fs.String("json", "", "`FILE` save what was found as JSON; - writes it here instead of text")
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
	v := new(inventory)
	if v.w, err = cli.Outputs(stdout, cli.Output{Flag: "-json", File: *file}); err != nil {
		return err
	}
	v.machine()
	v.interfaces(cfg.Interface)
	if err := v.gpus(device, cfg.CUDALibrary); err != nil {
		return err
	}
	if err := v.networks(cfg); err != nil {
		return err
	}
	if !*quick {
		v.transports(ctx, cfg.Interface)
	}
	return cli.SaveJSON("-json", *file, stdout, v)
}

func (v *inventory) machine() {
	v.Version, v.Go, v.OS, v.Arch = ringo.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH
	v.Host, _ = os.Hostname()
	v.CPU, v.Cores, v.Memory = bench.CPU(), runtime.NumCPU(), memoryFacts()
	v.line("ringo", "%s, %s %s/%s", v.Version, v.Go, v.OS, v.Arch)
	v.line("host", "%s", v.Host)
	v.line("cpu", "%s, %d cores", v.CPU, v.Cores)
	for _, f := range v.Memory {
		v.line(f.Name, "%s", f.Text)
	}
}

// transports tries the transports within one host.
func (v *inventory) transports(ctx context.Context, iface string) {
	for _, t := range []struct{ name, transport, network string }{
		{"inproc", "inproc", ""}, {"shm", "shm", ""}, {"unix", "socket", "unix"}, {"tcp", "socket", "tcp"},
	} {
		us, err := try(ctx, ringo.Config{Transport: t.transport, SocketNetwork: t.network, Interface: iface,
			JoinTimeout: 10 * time.Second, Timeout: 10 * time.Second})
		result := transportTest{Name: t.name, Time: us}
		if err != nil {
			result.Error = err.Error()
			v.line(t.name, "does not work: %v", err)
		} else {
			v.line(t.name, "works: 8 bytes all-reduced by two goroutines in %.2f us", us)
		}
		v.Transports = append(v.Transports, result)
	}
}

// networks lists the networks that may connect hosts, best first, and marks the first that can be used here.
func (v *inventory) networks(cfg ringo.Config) error {
	list, err := cfg.Networks()
	if err != nil {
		return err
	}
	v.TLS = cfg.Encryption()
	if v.TLS == "off" {
		v.line("TLS", "off: between hosts data travel in clear (RINGO_TLS=1)")
	} else {
		v.line("TLS", "on, %s: what ranks say when they meet, and TCP between them", v.TLS)
	}
	chosen := false
	for i := range list {
		n := network{Name: list[i].Name}
		found, err := list[i].Probe()
		if err != nil {
			n.Error = strings.TrimPrefix(err.Error(), n.Name+": ")
			v.line("network", "%-10s not here: %s", n.Name, n.Error)
			v.Networks = append(v.Networks, n)
			continue
		}
		n.Kind, n.Devices, n.Chosen = found.Kind, found.Devices, !chosen
		chosen = true
		var words []string
		for _, d := range n.Devices {
			word := d.Name
			if d.Detail != "" {
				word += " " + d.Detail
			}
			if d.Mbps > 0 {
				word += fmt.Sprintf(" %g Gbit/s", float64(d.Mbps)/1000)
			}
			words = append(words, word)
		}
		mark := ""
		if n.Chosen {
			mark = "   <- hosts that have it too are connected by it"
		}
		v.line("network", "%-10s %s%s", n.Name, strings.TrimSpace(n.Kind+" "+strings.Join(words, ", ")), mark)
		v.Networks = append(v.Networks, n)
	}
	return nil
}

// interfaces lists the network interfaces that are up, and marks the one for TCP between hosts.
func (v *inventory) interfaces(ifName string) {
	chosen, reason := listenAddress(ifName)
	ifs, err := net.Interfaces()
	if err != nil {
		v.line("interfaces", "cannot be listed: %v", err)
		return
	}
	for _, f := range ifs {
		addrs, err := f.Addrs()
		if err != nil || f.Flags&net.FlagUp == 0 || len(addrs) == 0 {
			continue
		}
		found := netInterface{Name: f.Name}
		mark := ""
		for _, a := range addrs {
			found.Addresses = append(found.Addresses, a.String())
			if p, err := netip.ParsePrefix(a.String()); err == nil && chosen.IsValid() &&
				p.Addr().WithZone("") == chosen.WithZone("") {
				found.Chosen = reason(f.Name)
				mark = "   <- TCP between hosts goes here: " + found.Chosen
			}
		}
		v.line("interface", "%-10s %s%s", f.Name, strings.Join(found.Addresses, " "), mark)
		v.Interfaces = append(v.Interfaces, found)
	}
	if !chosen.IsValid() {
		v.line("interface", "none can be used: %s", reason(""))
	}
}

// listenAddress is the address at which the socket transport listens, invalid if there is none, and the
// reason for it, given its interface.
func listenAddress(ifName string) (netip.Addr, func(iface string) string) {
	addr, err := socket.Address(socket.Options{IfName: ifName})
	if err != nil {
		return netip.Addr{}, func(string) string { return err.Error() }
	}
	return addr, func(iface string) string {
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
// of one all-reduce.
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
