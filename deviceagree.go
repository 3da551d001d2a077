package ringo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A fabric is what GPUs are like and how they are connected.
type fabric struct {
	gpus      []string // names
	near, far gpuPath  // the best path of a pair and the worst
	topo      topology
}

// path is the name of the path of all pairs, "" if they differ.
func (f *fabric) path() string {
	if f.near != f.far {
		return ""
	}
	return gpuPathNames[f.near]
}

// matches reports whether a plan is for a fabric.
func (p *Plan) matches(f *fabric) bool {
	for _, g := range f.gpus {
		if len(p.GPUs) > 0 && !slices.Contains(p.GPUs, g) {
			return false
		}
	}
	return p.Path == "" || p.Path == f.path()
}

// Scope says which GPUs and paths a plan is for.
func (p *Plan) Scope() string {
	return cmp.Or(strings.Join(p.GPUs, ", "), "any GPU") + ", " + cmp.Or(p.Path, "any path")
}

// String says the same of a fabric.
func (f *fabric) String() string {
	names := slices.Compact(slices.Sorted(slices.Values(f.gpus)))
	return strings.Join(names, ", ") + ", " + cmp.Or(f.path(), "several paths")
}

// rowsFor are the rows of a plan that was given (or nil), of the built-in ones and
// of the model, in this order.
func rowsFor(given *Plan, f *fabric, can kernelSet) (rows planRows) {
	for _, p := range append([]*Plan{given}, builtinPlans()...) {
		if p != nil && p.matches(f) {
			rows.add(p, f.topo.ranks)
		}
	}
	rows.model(f, can.CanDirect())
	return rows
}

// agreeOnPlan gives all ranks rank 0's rows. When it returns, the engines of all
// ranks are there: nobody may write to a board before its owner's is.
func (c *Comm) agreeOnPlan(ctx context.Context) error {
	d := c.dev
	d.planner = planner{topo: c.topo, forced: c.cfg.algo, can: d.engine}
	var mine []byte
	if c.rank == 0 {
		f := d.net.fabric(c.topo, c.profiles)
		if c.given != nil && !c.given.matches(f) {
			note := fmt.Sprintf("GPU plan: %s is not used: it is for %s; these are %s", c.given.name, c.given.Scope(), f)
			c.notes = append(c.notes, note)
			c.log.Warn("plan not used", "subsys", "INIT", "why", note)
		}
		rows := rowsFor(c.given, f, d.engine)
		mine = rows.encode()
	}
	all, err := c.group.AllGather(ctx, mine)
	if err != nil {
		return err
	}
	return d.rows.decode(all[0])
}

// fabric is what this communicator's GPUs are like.
func (n *deviceNet) fabric(topo topology, all []profile) *fabric {
	f := &fabric{topo: topo, near: overP2P, far: overP2P}
	for i := range all {
		f.gpus = append(f.gpus, all[i].GPU)
	}
	for i, pair := range n.pairs() {
		if p := n.paths[pair]; i == 0 {
			f.near, f.far = p, p
		} else {
			f.near, f.far = min(f.near, p), max(f.far, p)
		}
	}
	return f
}

// A planSource is the text of a plan as it travels from rank 0 to the others, and
// on to the parts of a communicator that is split.
type planSource struct {
	Name, Text string
	Unread     string `json:",omitempty"` // why there is no text
}

// loadPlan reads a file; without a name there is nothing to read.
func loadPlan(name string) planSource {
	if name == "" {
		return planSource{}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return planSource{Name: name, Unread: err.Error()}
	}
	return planSource{Name: name, Text: string(text)}
}

// parse is the plan, nil if there is none. The error is a *PlanError.
func (s *planSource) parse() (*Plan, error) {
	switch {
	case s == nil || s.Name == "":
		return nil, nil
	case s.Unread != "":
		return nil, &PlanError{File: s.Name, Reason: s.Unread}
	}
	return ParsePlan(s.Name, s.Text)
}

// encode and decode carry rows from rank 0 to the others.
func (rows *planRows) encode() []byte {
	b, err := json.Marshal(rows)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return b
}

func (rows *planRows) decode(b []byte) error {
	if err := json.Unmarshal(b, rows); err != nil {
		return fmt.Errorf("rank 0's plan: %w", err)
	}
	for kind := range rows {
		for _, list := range rows[kind] {
			for _, r := range list {
				if r.Algo >= algos {
					return fmt.Errorf("rank 0's plan: %v of %v", r.Algo, Kind(kind))
				}
			}
		}
	}
	return nil
}
