package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/sched/sim"
)

// netFlags are the flags that describe a machine.
type netFlags struct {
	net         string
	weak        []int   // ranks
	weakBy      float64 // how many times slower they are
	bw          float64 // bytes a second
	node, cards int
	latency     time.Duration
}

// register defines the flags but -node.
func (f *netFlags) register(fs *flag.FlagSet) {
	cli.Var(fs, func(text string) (err error) {
		if f.net = text; !strings.HasSuffix(text, ".json") {
			f.net, err = cli.OneOf("net", text, append(slices.Sorted(maps.Keys(sim.Presets)), "list"))
		}
		return err
	}, func() string { return f.net },
		"net `NET` shm, tcp, ethernet25, ethernet100, ndr, nvlink (default ndr), or a file that ends in .json; "+
			"list: what each is")
	cli.Var(fs, func(text string) (err error) {
		f.bw, err = sim.ParseRate(text)
		return err
	}, func() string { return "" }, "bw `RATE` between nodes, of a card: 400G (bits a second), 50GB (bytes)")
	cli.Int(fs, &f.cards, 0, mostRanks, "1 or more cards of a node, or 0 for one a rank",
		"cards `N` of a node, which its ranks share evenly (default: one a rank)")
	cli.Duration(fs, &f.latency, 0, "latency `D` between nodes, such as 1us")
	cli.Var(fs, f.setWeak, func() string { return "" }, "weak `R,..:F` ports of these ranks between nodes are "+
		"F times slower: 5:10 is a slow link, 0,1:2 a dead card whose rank shares another's")
}

// model is the machine that the flags describe, for a number of ranks.
func (f *netFlags) model(ranks int) (sim.Model, error) {
	m, err := findNet(f.net)
	if err != nil {
		return m, err
	}
	if f.node > 0 {
		m.NodeRanks = f.node
	}
	for _, r := range f.weak {
		if r >= ranks {
			return m, cli.Usagef("-weak: \"%d\" is no rank of %d", r, ranks)
		}
	}
	m.Weak, m.WeakBy = f.weak, f.weakBy
	return m, f.between(&m, ranks)
}

// between sets the links between nodes to -bw, -cards and -latency.
func (f *netFlags) between(m *sim.Model, ranks int) error {
	if f.bw == 0 && f.cards == 0 && f.latency == 0 {
		return nil
	}
	switch {
	case m.NodeRanks == 0 || m.NodeRanks >= ranks:
		return cli.Usagef("-bw, -cards and -latency are between nodes, and all %d ranks are on one: give -node", ranks)
	case f.bw == 0 && m.Inter.Bandwidth == 0:
		return cli.Usagef("-net %s has nothing between nodes: give -bw", f.net)
	}
	var said []string
	if f.bw > 0 || f.cards > 0 {
		card := m.Inter.Shared
		if card == 0 || m.Inter.Shared > m.Inter.Bandwidth && !m.Inter.Busy {
			card = m.Inter.Bandwidth
		}
		if f.bw > 0 {
			card = f.bw
		}
		cards := f.cards
		if cards == 0 {
			cards = m.NodeRanks
		}
		m.Inter.Bandwidth, m.Inter.Shared = card, card*float64(cards)
		if cards >= m.NodeRanks {
			m.Inter.Shared = 0 // no rank shares its card
		}
		word := "cards"
		if cards == 1 {
			word = "card"
		}
		said = append(said, fmt.Sprintf("%d %s of %s", cards, word, sim.FormatRate(card)))
	}
	if f.latency > 0 {
		m.Inter.Latency = f.latency.Seconds()
		said = append(said, fmt.Sprintf("latency %v", f.latency))
	}
	m.Between = strings.Join(said, ", ")
	m.Name += " with " + m.Between + " between nodes"
	return nil
}

// findNet is the model of a preset, or of a file if name ends in .json.
func findNet(name string) (sim.Model, error) {
	if strings.HasSuffix(name, ".json") {
		text, err := given.Read(name)
		if err != nil {
			return sim.Model{}, cli.Usagef("-net: %v", err)
		}
		m, err := sim.Parse(text)
		if err != nil {
			return m, cli.Usagef("-net %s: %v", name, err)
		}
		if m.Name == "" {
			m.Name = name
		}
		return m, nil
	}
	return sim.Presets[name], nil
}

// listNets describes the presets, and shows how a file looks.
func listNets(w io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(sim.Presets)) {
		fmt.Fprintf(w, "%-12s %v\n", name, sim.Presets[name])
	}
	text, err := sim.Format(sim.Ethernet100G)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `
These are round figures; a rank's rate is one way, "together" and "a node" are what ranks share.
A file of one's own, for -net FILE.json, has any of these fields; "like": "ndr" takes the others from
there. "busy" says that the sender's core moves the bytes, "overhead" is the core's time for a slice.
This is ethernet100:

%s`, text)
	return err
}

// setWeak takes ranks, and how many times slower their ports are.
func (f *netFlags) setWeak(text string) (err error) {
	const want = "want ranks and how many times slower they are, such as 0,1:2"
	names, factor, _ := strings.Cut(text, ":")
	if f.weakBy, err = strconv.ParseFloat(factor, 64); err != nil || !(f.weakBy >= 1) || math.IsInf(f.weakBy, 0) {
		return errors.New(want)
	}
	f.weak = nil
	for _, name := range strings.Split(names, ",") {
		r, err := strconv.Atoi(name)
		if err != nil || r < 0 {
			return errors.New(want)
		}
		f.weak = append(f.weak, r)
	}
	return nil
}
