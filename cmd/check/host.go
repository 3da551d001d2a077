package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hostStage looks at hosts: their hardware and settings, and limits that keep ranks from using them.
func hostStage() stage {
	return stage{
		Name: "host", Asks: "Is every host made and set up like the others?",
		Quick: 5 * time.Second, Full: 20 * time.Second,
		Measure: measureHost, Judge: judgeHost,
	}
}

// facts gathers the measurements of a host.
type facts struct {
	host string
	m    *machine
	list []measurement
}

func (f *facts) number(part, quantity string, value float64, unit string) {
	f.list = append(f.list, measurement{Subject: of(f.host, part), Quantity: quantity, Value: value, Unit: unit})
}

func (f *facts) word(part, quantity, text string) {
	f.list = append(f.list, measurement{Subject: of(f.host, part), Quantity: quantity, Text: text})
}

func measureHost(ctx context.Context, j *job) ([]measurement, error) {
	f := &facts{host: j.Host(), m: j.machine}
	if err := f.clock(ctx, j); err != nil {
		return nil, err
	}
	if !j.Leader() {
		return f.list, nil
	}
	f.word("", "kernel", f.m.text("proc/sys/kernel/osrelease"))
	f.processor()
	f.memory()
	f.limits()
	f.pci()
	f.interfaces()
	f.strangers(j)
	f.rdma()
	return f.list, nil
}

// clockRounds is how many times rank 0 tells its time.
const clockRounds = 8

// clock measures the offset between rank 0's clock and this host's. In each gather rank 0 sends the
// time at which it comes: that is after this rank entered the previous gather, and before this rank
// receives the answer. So each round bounds the offset on both sides; the closest bounds count.
func (f *facts) clock(ctx context.Context, j *job) error {
	low, high := math.Inf(-1), math.Inf(1)
	var sent time.Time // to the gather before
	for range clockRounds {
		now := f.m.Now()
		parts, err := j.Gather(ctx, binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano())))
		if err != nil {
			return err
		}
		heard := f.m.Now()
		if len(parts[j.first]) == 8 && !sent.IsZero() {
			zero := time.Unix(0, int64(binary.BigEndian.Uint64(parts[j.first])))
			low, high = max(low, zero.Sub(heard).Seconds()), min(high, zero.Sub(sent).Seconds())
		}
		sent = now
	}
	if j.Leader() && !math.IsInf(low, 0) && !j.First() {
		f.number("", "clock offset", -(low+high)/2, "s") // of this host's clock against rank 0's
		f.number("", "clock uncertainty", math.Abs(high-low)/2, "s")
	} else if j.First() {
		f.number("", "clock offset", 0, "s")
		f.number("", "clock uncertainty", 0, "s")
	}
	return nil
}

func (f *facts) processor() {
	f.number("", "cores", float64(runtime.NumCPU()), "")
	if max, ok := f.m.number("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); ok {
		if now, ok := f.m.number("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"); ok && max > 0 {
			f.number("", "clock cap", now/max, "of its greatest clock")
		}
	}
	if load, ok := f.m.number("proc/loadavg"); ok {
		f.number("", "load", load, "")
	}
}

func (f *facts) memory() {
	for _, line := range strings.Split(f.m.text("proc/meminfo"), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		quantity := map[string]string{"MemTotal": "memory", "MemAvailable": "memory available"}[name]
		if kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64); err == nil &&
			quantity != "" {
			f.number("", quantity, kb*1024, "B")
		}
	}
	for _, mc := range f.m.list("sys/devices/system/edac/mc") {
		for _, kind := range []string{"ue", "ce"} {
			if n, ok := f.m.number("sys/devices/system/edac/mc/" + mc + "/" + kind + "_count"); ok {
				f.number("memory controller "+strings.TrimPrefix(mc, "mc"), kind, n, "")
			}
		}
	}
	if size, free, ok := f.m.Shm(); ok {
		f.number("/dev/shm", "size", float64(size), "B")
		f.number("/dev/shm", "free", float64(free), "B")
	}
}

func (f *facts) limits() {
	for _, name := range []string{"nofile", "memlock", "nproc"} {
		if v, ok := f.m.Limit(name); ok {
			f.number("limit "+name, "limit", float64(v), "")
		}
	}
}

// pci looks at the IOMMU, at bridges that redirect what GPUs and cards send to each other, and at the
// links of network cards.
func (f *facts) pci() {
	mode := "off"
	if len(f.m.list("sys/kernel/iommu_groups")) > 0 {
		mode = "on"
		if strings.Contains(f.m.text("proc/cmdline"), "iommu=pt") {
			mode = "passes through"
		}
	}
	f.word("", "IOMMU", mode)
	const dir = "sys/bus/pci/devices/"
	redirect, accelerators := 0, 0
	for _, dev := range f.m.list(dir) {
		class := f.m.text(dir + dev + "/class")
		switch {
		case strings.HasPrefix(class, "0x03") && f.m.text(dir+dev+"/vendor") == "0x10de":
			accelerators++
		case strings.HasPrefix(class, "0x0604"):
			if redirects([]byte(f.m.raw(dir + dev + "/config"))) {
				redirect++
			}
		case strings.HasPrefix(class, "0x02"):
			now, ok := f.m.number(dir + dev + "/current_link_width")
			most, ok2 := f.m.number(dir + dev + "/max_link_width")
			if ok && ok2 && most > 0 && now > 0 {
				f.number("card "+dev, "PCIe width", now, fmt.Sprintf("of %.0f lanes", most))
				f.number("card "+dev, "PCIe width greatest", most, "lanes")
			}
		}
	}
	f.number("", "GPUs on PCIe", float64(accelerators), "")
	f.number("", "bridges with ACS", float64(redirect), "")
}

// raw is a file's content.
func (m *machine) raw(file string) string {
	f, err := m.FS.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	return string(b[:n])
}

// redirects reports whether the Access Control Services in a bridge's configuration space send
// traffic between devices up to the root: bits 2 and 3 of ACS Control.
func redirects(config []byte) bool {
	for at := 0x100; at+8 <= len(config); {
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == 0x000d {
			return binary.LittleEndian.Uint16(config[at+6:])&0x0c != 0
		}
		next := int(head >> 20)
		if next <= at {
			break
		}
		at = next
	}
	return false
}

func (f *facts) interfaces() {
	const dir = "sys/class/net/"
	used, asked := map[string]bool{}, map[string]bool{}
	if list, err := f.m.Addresses(); err == nil {
		for _, a := range list {
			if !used[a.Interface] && a.MTU > 0 {
				f.number(a.Interface, "MTU", float64(a.MTU), "B")
				asked[a.Interface] = true
			}
			used[a.Interface] = true
		}
	} else {
		f.word("", "error", "its interfaces cannot be listed: "+err.Error())
	}
	for _, name := range f.m.list(dir) {
		card := f.m.exists(dir + name + "/device")
		if card { // a bridge is down while no container runs
			f.word(name, "state", f.m.text(dir+name+"/operstate"))
		}
		if !card && !used[name] {
			continue
		}
		if mtu, ok := f.m.number(dir + name + "/mtu"); ok && used[name] && !asked[name] {
			f.number(name, "MTU", mtu, "B")
		}
		if mbps, ok := f.m.number(dir + name + "/speed"); ok && mbps > 0 {
			f.number(name, "speed", mbps/1000, "Gbit/s")
		}
	}
}

// strangers notes cards that answer for addresses of other hosts.
func (f *facts) strangers(j *job) {
	j.neighbours.look(f.m)
	strangers := j.neighbours.strangers(j.members)
	for _, ip := range slices.Sorted(maps.Keys(strangers)) {
		for _, mac := range strangers[ip] {
			f.word("", "stranger", ip+" "+mac)
		}
	}
}

func (f *facts) rdma() {
	const dir = "sys/class/infiniband/"
	for _, dev := range f.m.list(dir) {
		for _, port := range f.m.list(dir + dev + "/ports") {
			p, part := dir+dev+"/ports/"+port, dev+":"+port
			_, state, _ := strings.Cut(f.m.text(p+"/state"), ": ")
			_, phys, _ := strings.Cut(f.m.text(p+"/phys_state"), ": ")
			f.word(part, "RDMA state", state)
			f.word(part, "RDMA physical state", phys)
			if rate, ok := f.m.number(p + "/rate"); ok {
				f.number(part, "RDMA rate", rate, "Gbit/s")
			}
			for _, c := range []string{"symbol_error", "port_rcv_errors", "link_downed", "local_link_integrity_errors"} {
				if n, ok := f.m.number(p + "/counters/" + c); ok {
					f.number(part, "RDMA "+c, n, "")
				}
			}
		}
	}
}
