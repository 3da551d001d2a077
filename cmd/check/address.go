package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Addresses that two hosts have: hosts tell theirs, and watch whose cards answer for the others'.

// neighbourTime is how often a rank looks at its neighbours while ranks join.
const neighbourTime = 200 * time.Millisecond

// manyAddresses is for how many addresses a card answers that stands in for others, as routers of clouds do.
const manyAddresses = 3

// neighbours are the hardware addresses that have answered for IPv4 addresses, as this host's kernel has seen.
type neighbours struct {
	asked sync.WaitGroup
	mu    sync.Mutex
	seen  map[string]map[string]bool // MACs by IP
	gates []string                   // addresses of routers
}

// ask notes which cards answer for this host's own addresses.
func (n *neighbours) ask(list []address) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, a := range list[:min(len(list), maxRails)] {
		if ip := a.Net.IP.To4(); ip != nil {
			all.Go(func() {
				for _, mac := range alsoAnswers(a.Interface, ip) {
					n.note(ip.String(), mac)
					n.note(ip.String(), a.MAC)
				}
			})
		}
	}
}

// note notes that a card has answered for an address.
func (n *neighbours) note(ip, mac string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen[ip] == nil {
		n.seen[ip] = map[string]bool{}
	}
	n.seen[ip][mac] = true
}

// look notes the kernel's present table.
func (n *neighbours) look(m *machine) {
	for line := range strings.Lines(m.text("proc/net/arp")) {
		w := strings.Fields(line)
		if len(w) >= 6 && net.ParseIP(w[0]) != nil && w[3] != "00:00:00:00:00:00" {
			n.note(w[0], w[3])
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gates = nil
	for line := range strings.Lines(m.text("proc/net/route")) {
		w := strings.Fields(line)
		if len(w) < 3 {
			continue
		}
		if at, err := strconv.ParseUint(w[2], 16, 32); err == nil && at != 0 {
			n.gates = append(n.gates, net.IP(binary.NativeEndian.AppendUint32(nil, uint32(at))).String())
		}
	}
}

// watch looks until ctx ends.
func (n *neighbours) watch(ctx context.Context, m *machine) {
	for ctx.Err() == nil {
		n.look(m)
		select {
		case <-time.After(neighbourTime):
		case <-ctx.Done():
		}
	}
}

// strangers are the cards that have answered for an address of a rank's host beside the host's own, by address. A card
// that answers for many, or for a router, stands in for them.
func (n *neighbours) strangers(members []member) map[string][]string {
	n.asked.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := map[string]int{}
	for ip, macs := range n.seen {
		for mac := range macs {
			if answers[mac]++; slices.Contains(n.gates, ip) {
				answers[mac] += manyAddresses
			}
		}
	}
	found := map[string][]string{}
	for _, m := range members {
		for _, a := range m.Addresses {
			ip, own := a.Net.IP.String(), false
			var others []string
			for mac := range n.seen[ip] {
				if slices.Contains(m.MACs, mac) {
					own = true
				} else if answers[mac] < manyAddresses {
					others = append(others, mac)
				}
			}
			if own && len(others) > 0 {
				slices.Sort(others)
				found[ip] = others
			}
		}
	}
	return found
}

// hardware are the addresses of this host's cards.
func hardware() (macs []string) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, f := range ifs {
		if mac := f.HardwareAddr.String(); mac != "" && !virtual(f.Name) && !slices.Contains(macs, mac) {
			macs = append(macs, mac)
		}
	}
	return macs
}

// An owned is an address of a host, as measured.
type owned struct {
	port
	host string
}

// owners are the addresses that hosts have told.
func owners(r *report) (list []owned) {
	for _, m := range r.Of(rendezvous, "address") {
		at, mac, _ := strings.Cut(m.Text, " ")
		ip, n, err := net.ParseCIDR(at)
		if err != nil {
			continue
		}
		bits, _ := n.Mask.Size()
		list = append(list, owned{port{Interface: m.Subject.Part, IP: ip, Mask: bits, MAC: mac}, m.Subject.Host})
	}
	return list
}

// tell puts the addresses of all hosts that have come into the report, also of those that were lost since.
func (r *report) tell(j *job) {
	told := map[string]bool{}
	for _, m := range j.members {
		if told[m.Host] {
			continue
		}
		for _, a := range m.Addresses {
			told[m.Host] = true
			r.Measurements = append(r.Measurements, measurement{Stage: rendezvous, Rank: m.Rank,
				Subject: of(m.Host, a.Interface), Quantity: "address", Text: fmt.Sprint(a.Net.String(), " ", a.MAC)})
		}
	}
}

// duplicates names addresses that two hosts have by mistake: exactly two have told the address, and another address of
// its network is on an interface of the same name. Other common addresses are no mistake: bridges to containers have
// one address on all hosts, and hosts may be one machine.
func duplicates(r *report) []finding {
	f := &findings{r: r}
	list := owners(r)
	said := map[string]bool{}
	for i, p := range list {
		var twins []owned
		used := false
		for k, q := range list {
			if q.IP.Equal(p.IP) && q.host != p.host && q.MAC != p.MAC && k > i {
				twins = append(twins, q)
			}
			used = used || q.Interface == p.Interface && !q.IP.Equal(p.IP) && p.reaches(q.port)
		}
		if len(twins) == 1 && used && !said[p.IP.String()] {
			q := twins[0]
			f.add(broken, "duplicate-address", pairOf(component{p.host, p.Interface}, component{q.host, q.Interface}), 2000,
				"address %v is on hosts %s and %s: what is sent to it reaches either; give each host one of its own", p.IP, p.host,
				q.host)
		}
		said[p.IP.String()] = true
	}
	for i := range f.list {
		f.list[i].Stage = rendezvous
	}
	return f.list
}

// strangers names addresses of hosts for which a card has answered that is not the host's.
func (f *findings) strangers() {
	list := owners(f.r)
	said, answers := map[string]bool{}, map[string]string{} // an address for which a card answers
	many := map[string]bool{}                               // cards that answer for several: they stand in for others
	for _, m := range f.r.Of("host", "stranger") {
		at, mac, _ := strings.Cut(m.Text, " ")
		many[mac] = many[mac] || answers[mac] != "" && answers[mac] != at
		answers[mac] = at
	}
	for _, m := range f.r.Of("host", "stranger") {
		at, mac, _ := strings.Cut(m.Text, " ")
		i := slices.IndexFunc(list, func(o owned) bool { return o.IP.String() == at })
		if i < 0 || said[at] || many[mac] || f.r.duplicate(at) {
			continue
		}
		said[at] = true
		who := "a host that is none of those that have come"
		if ranks := f.absent(); len(ranks) > 0 {
			who += ", such as that of " + strings.Join(ranks, ", ")
		}
		if k := slices.IndexFunc(list, func(o owned) bool { return o.MAC == mac }); k >= 0 {
			who = "host " + list[k].host
		}
		f.add(broken, "duplicate-address", of(list[i].host, list[i].Interface), 2000,
			"address %s is on this host and on another: card %s answers for it too, of %s; which of the two has it by mistake "+
				"cannot be known here: give each host one of its own", at, mac, who)
	}
}

// duplicate reports whether a finding says that two hosts have an address.
func (r *report) duplicate(address string) bool {
	return slices.ContainsFunc(r.Findings, func(o finding) bool {
		return o.Code == "duplicate-address" && strings.HasPrefix(o.Text, "address "+address+" ")
	})
}

// absent are the ranks that have not come, as findings name them.
func (f *findings) absent() (ranks []string) {
	for _, o := range f.r.Findings {
		if o.Code == "absent" {
			ranks = append(ranks, o.Subject.String())
		}
	}
	return ranks
}

// excuse takes back what is said of hosts whose address two hosts have: what they do not receive is no fault of theirs.
// Who has not come may be the one whose address another host took.
func (r *report) excuse() {
	ill := map[string]bool{}
	strange := false // a host that has not come has an address of another
	for _, f := range r.Findings {
		if f.Code == "duplicate-address" {
			ill[f.Subject.Host] = true
			if f.Subject.IsPair() {
				ill[f.Subject.To.Host] = true
			} else {
				strange = true
			}
		}
	}
	if len(ill) == 0 {
		return
	}
	const why = "two hosts have one address, as another finding says, so this may be no fault of its own: "
	r.Findings = slices.DeleteFunc(r.Findings, func(f finding) bool {
		switch f.Code {
		case "no-link", "no-stream", "loss", "late-link", "slow-link", "corrupt-link", "black-hole":
			return ill[f.Subject.Host] || ill[f.Subject.To.Host]
		}
		return false
	})
	for i := range r.Findings {
		switch f := &r.Findings[i]; f.Code {
		case "absent":
			if strange {
				f.Severity, f.Text = unjudged, why+f.Text
			}
		case "died", "stopped", "cut-off":
			if f.Subject == (subject{}) || ill[f.Subject.Host] || ill[f.Subject.To.Host] {
				f.Severity, f.Text = unjudged, why+f.Text
			}
		}
	}
}
