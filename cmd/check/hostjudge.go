package check

import (
	"fmt"
	"math"
)

// Judging the stage "host": clocks, limits, memory, interfaces and RDMA devices of each host. Properties that must be
// the same everywhere are compared among hosts, amounts with these bounds.
const (
	clockBound   = 0.1      // s that clocks may differ
	leastFiles   = 4096     // descriptors: the hub of a job has one for each rank
	leastProcs   = 1024     // threads and processes of a user
	leastLocked  = 64 << 20 // bytes that RDMA registers
	leastShm     = 16 << 20
	leastMemory  = 256 << 20
	manyRepaired = 1000 // memory errors that ECC has repaired
)

// findings gathers the findings of a judge.
type findings struct {
	r      *report
	list   []finding
	models map[subject]measurement // see modelOf
}

// add appends a finding, whose text is made by fmt.Sprintf.
func (f *findings) add(s severity, code string, subject subject, weight float64, format string, a ...any) {
	f.list = append(f.list, finding{Severity: s, Code: code, Subject: subject, Weight: weight,
		Text: fmt.Sprintf(format, a...)})
}

func judgeHost(r *report, _ *config) []finding {
	f := &findings{r: r}
	f.strangers()
	f.clocks()
	f.equals()
	f.amounts()
	f.interfaces()
	f.rdma()
	for _, m := range r.Of("host", "error") {
		f.add(unjudged, "host-error", m.Subject, 0, "%s", m.Text)
	}
	return f.list
}

// clocks compares clocks with the median of all, since the clock of rank 0's host may be the wrong one.
func (f *findings) clocks() {
	offsets := f.r.Of("host", "clock offset")
	unsure := f.r.Of("host", "clock uncertainty")
	var values []float64
	for _, m := range offsets {
		values = append(values, m.Value)
	}
	middle, whose := median(values), "most hosts'"
	if len(values) == 2 { // nobody can tell which clock is off
		middle, whose = 0, "the first host's"
	}
	for _, m := range offsets {
		off := m.Value - middle
		slack := clockBound
		if u, ok := hostOf(unsure, m.Subject.Host, ""); ok {
			slack += u.Value
		}
		if math.Abs(off) > slack {
			way := "ahead of"
			if off < 0 {
				way = "behind"
			}
			f.add(degraded, "clock-offset", m.Subject, math.Abs(off),
				"its clock is %s %s %s: logs and leases cannot be compared; start chrony or ntpd there",
				spell(math.Abs(off), "s"), way, whose)
		}
	}
}

// equals finds properties that should be the same on all hosts and are not.
func (f *findings) equals() {
	for _, q := range []struct {
		quantity, code string
		severity       severity
		text           string
	}{
		{"cores", "cores-differ", degraded, "%s cores, %s on %s: are some offline, or is the process bound to few?"},
		{"GPUs on PCIe", "pci-gpus-differ", degraded,
			"%s GPUs on PCIe, %s on %s: has one fallen off the bus? look for Xid 79 in its kernel log, and power it off and on"},
		{"IOMMU", "iommu-differs", degraded, "its IOMMU is %s, and %s on %s: set the same kernel arguments and BIOS options"},
		{"bridges with ACS", "acs-differs", degraded,
			"%s PCIe bridges have ACS redirection on, %s on %s: GPUs and cards reach each other only through the root there; " +
				"switch it off in the BIOS or by setpci"},
		{"kernel", "kernel-differs", well, "kernel %s, %s on %s"},
	} {
		for _, o := range unlike(f.r.Of("host", q.quantity)) {
			mine, most := o.said(), o.most
			if o.Text == "" && mine == "" {
				mine = "0"
			}
			if most == "" {
				most = "0"
			}
			f.add(q.severity, q.code, o.Subject, 1, q.text, mine, most, o.who)
		}
	}
}

// amounts finds hosts with too little memory, disk or limits, or with too many memory errors.
func (f *findings) amounts() {
	r := f.r
	total := r.Of("host", "memory")
	var values []float64
	for _, m := range total {
		values = append(values, m.Value)
	}
	for _, o := range outliers(values, 0.05, true) {
		f.add(degraded, "less-memory", total[o.Index].Subject, 1/o.Ratio,
			"%s of memory, the others have %s: has a DIMM failed? look into its BMC's log", bytesOf(o.Value), bytesOf(o.Median))
	}
	for _, m := range r.Of("host", "memory available") {
		if m.Value < leastMemory {
			f.add(degraded, "no-memory", m.Subject, 1, "only %s of memory is available: end what holds it", bytesOf(m.Value))
		}
	}
	for _, m := range r.Of("host", "ue") {
		if m.Value > 0 {
			f.add(broken, "memory-errors", m.Subject, m.Value, "%.0f memory errors that ECC could not repair: replace the DIMM",
				m.Value)
		}
	}
	for _, m := range r.Of("host", "ce") {
		if m.Value >= manyRepaired {
			f.add(degraded, "memory-repairs", m.Subject, m.Value, "ECC has repaired %.0f memory errors: have the DIMM replaced",
				m.Value)
		}
	}
	sizes := r.Of("host", "size")
	for _, m := range r.Of("host", "free") {
		if size, ok := hostOf(sizes, m.Subject.Host, m.Subject.Part); ok && m.Value < leastShm {
			f.add(degraded, "shm-full", m.Subject, 1,
				"%s of %s are free: NCCL and data loaders need it; remove what dead jobs have left there, or mount it larger "+
					"(docker run --shm-size)", bytesOf(m.Value), bytesOf(size.Value))
		}
	}
	f.withoutShm(sizes)
	cap := r.Of("host", "clock cap")
	for _, m := range cap {
		if m.Value < 0.95 {
			f.add(degraded, "cpu-capped", m.Subject, 1/m.Value,
				"its cores may run at %.0f %% of their greatest clock: look at scaling_max_freq, the power profile and the BMC",
				100*m.Value)
		}
	}
	widths := r.Of("host", "PCIe width greatest")
	for _, m := range r.Of("host", "PCIe width") {
		if most, ok := hostOf(widths, m.Subject.Host, m.Subject.Part); ok && m.Value < most.Value {
			f.add(degraded, "pcie-narrow", m.Subject, most.Value/m.Value,
				"its PCIe link has %.0f lanes of %.0f: reseat the card or its riser", m.Value, most.Value)
		}
	}
	f.limits()
}

// withoutShm finds hosts that have no /dev/shm where others have.
func (f *findings) withoutShm(sizes []measurement) {
	for _, m := range f.r.Of("host", "cores") {
		if _, ok := hostOf(sizes, m.Subject.Host, "/dev/shm"); !ok && len(sizes) > 0 {
			f.add(broken, "shm-missing", of(m.Subject.Host, "/dev/shm"), 1,
				"it is not there, and other hosts have it: mount a tmpfs at it")
		}
	}
}

func (f *findings) limits() {
	for _, m := range f.r.Of("host", "limit") {
		rdma := false
		for _, x := range f.r.Of("host", "RDMA state") {
			rdma = rdma || x.Subject.Host == m.Subject.Host
		}
		switch part := m.Subject.Part; {
		case part == "limit nofile" && m.Value < leastFiles:
			f.add(degraded, "low-nofile", m.Subject, 1,
				"a process may open %.0f files, and a rendezvous of many ranks needs more: raise LimitNOFILE or ulimit -n to %d "+
					"or more", m.Value, leastFiles)
		case part == "limit nproc" && m.Value < leastProcs:
			f.add(degraded, "low-nproc", m.Subject, 1,
				"a user may have %.0f threads and processes: raise LimitNPROC or ulimit -u to %d or more", m.Value, leastProcs)
		case part == "limit memlock" && m.Value < leastLocked && rdma:
			f.add(broken, "low-memlock", m.Subject, 1,
				"a process may lock %s of memory, so RDMA cannot register buffers: set LimitMEMLOCK=infinity or ulimit -l "+
					"unlimited", bytesOf(m.Value))
		}
	}
}

func (f *findings) interfaces() {
	for _, same := range byPart(f.r.Of("host", "state")) {
		for _, o := range unlike(same) {
			if o.Text == "down" || o.Text == "lowerlayerdown" {
				f.add(broken, "interface-down", o.Subject, 1,
					"the interface is down, and %s on %s: look at cable, transceiver and switch port, then ip link set %s up", o.most,
					o.who, o.Subject.Part)
			}
		}
	}
	// Hosts may call the interface that they use by different names.
	mtu := f.r.Of("host", "MTU")
	groups := byPart(mtu)
	if len(groups) > 1 && onceEach(mtu) {
		groups = [][]measurement{mtu}
	}
	for _, same := range groups {
		for _, o := range unlike(same) {
			f.add(degraded, "mtu-differs", o.Subject, 1,
				"MTU %.0f, %s on %s: large packets are lost or cut; set the same on hosts and switch ports", o.Value, o.most, o.who)
		}
	}
	for _, same := range byPart(f.r.Of("host", "speed")) {
		for _, o := range unlike(same) {
			f.add(degraded, "speed-differs", o.Subject, 1,
				"the interface runs at %s, at %s on %s: look at cable, transceiver and negotiation", o.said(), o.most, o.who)
		}
	}
}

// onceEach reports whether no host has two measurements.
func onceEach(list []measurement) bool {
	seen := map[string]bool{}
	for _, m := range list {
		if seen[m.Subject.Host] {
			return false
		}
		seen[m.Subject.Host] = true
	}
	return true
}

func (f *findings) rdma() {
	r := f.r
	physical := r.Of("host", "RDMA physical state")
	for _, same := range byPart(r.Of("host", "RDMA state")) {
		differ := map[string]bool{}
		for _, o := range unlike(same) {
			differ[o.Subject.Host] = true
		}
		for _, m := range same {
			phys, _ := hostOf(physical, m.Subject.Host, m.Subject.Part)
			switch {
			case m.Text == "ACTIVE":
			case m.Text == "INIT" && phys.Text == "LinkUp":
				f.add(broken, "rdma-init", m.Subject, 1,
					"the port is up and has no address: no subnet manager has configured it; start opensm or look at the switch's")
			case differ[m.Subject.Host]:
				f.add(broken, "rdma-down", m.Subject, 1,
					"the port is %s (%s), and active on other hosts: look at cable, transceiver and switch port", m.Text, phys.Text)
			}
		}
	}
	for _, same := range byPart(r.Of("host", "RDMA rate")) {
		for _, o := range unlike(same) {
			if state, ok := hostOf(r.Of("host", "RDMA state"), o.Subject.Host, o.Subject.Part); ok && state.Text == "ACTIVE" {
				f.add(degraded, "rdma-slow", o.Subject, 1,
					"the port runs at %s, at %s on %s: it has negotiated less; reseat or replace cable and transceiver", o.said(),
					o.most, o.who)
			}
		}
	}
	for _, c := range []struct {
		counter string
		bound   float64
		what    string
	}{
		{"symbol_error", 1000, "symbol errors: clean or replace cable and transceiver"},
		{"local_link_integrity_errors", 1, "link integrity errors: replace cable and transceiver"},
		{"link_downed", 10, "times down since it was reset: cable, transceiver or switch port fail now and then"},
	} {
		for _, m := range r.Of("host", "RDMA "+c.counter) {
			if m.Value >= c.bound {
				f.add(degraded, "rdma-errors", m.Subject, m.Value, "%.0f %s", m.Value, c.what)
			}
		}
	}
	// A missing card has no measurement, so the cards are counted.
	count := map[string]int{}
	for _, m := range r.Of("host", "RDMA state") {
		count[m.Subject.Host]++
	}
	told := map[string]bool{} // hosts that have said anything
	for _, m := range r.Of("host", "") {
		told[m.Subject.Host] = true
	}
	var ports []measurement
	for _, h := range r.Hosts {
		if told[h.Name] {
			ports = append(ports, measurement{Subject: of(h.Name, ""), Value: float64(count[h.Name]), Unit: "ports"})
		}
	}
	if len(count) > 0 {
		for _, o := range unlike(ports) {
			f.add(broken, "rdma-missing", o.Subject, 1,
				"%.0f RDMA ports, %s on %s: has a card fallen off the bus, or is its driver not loaded? look at lspci and dmesg",
				o.Value, o.most, o.who)
		}
	}
}
