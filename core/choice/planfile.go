package choice

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/given"
	"github.com/ringo-go/ringo/internal/setting"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/transport"
)

// A Plan is a table that says which algorithm carries out a collective on GPU
// memory. "ringo tune" measures one and writes it to a file, which Config.Plan
// names. A line of the file is one row, a line before the first row says where it
// is from:
//
//	ringo plan 2
//	machine  4 × NVIDIA H200
//	driver   CUDA 13.0
//	date     2026-11-20
//	gpu      NVIDIA H200
//	path     p2p
//
//	# collective  ranks  memory      up to  algorithm  blocks
//	allreduce     4      any         256K   oneshot
//	allreduce     4      any         16M    twoshot    64/32
//	allreduce     4      any         all    ring       128/64
//	allgather     5-8    registered  all    window     # from the model
//
// Blocks are how many blocks of a GPU a kernel takes at most, by the policy default and after the
// slash by efficiency and zero; policy latency does not look at them. Without them a kernel takes as
// many as there is work for, or half. A file with blocks has version 2.
//
// The first row that has a call's collective, ranks, memory and size counts, rows for
// registered memory before others; where no row fits, the choice is the same as without the file.
type Plan struct {
	Machine, Driver, Date string // for the reader alone

	GPUs []string // names of GPUs it is for; none for any
	Path string   // between all GPUs: "p2p", "pcie", "host memory", "bridge"; "" for any
	Rows []PlanRow

	name string // of the file, or where it is from
}

// A PlanRow is one line of a Plan.
type PlanRow struct {
	Kind       call.Kind
	From, To   int   // ranks
	Registered bool  // for memory that is registered alone
	UpTo       int64 // bytes of the larger buffer of a rank, as "ringo bench" counts; -1 for all
	Algo       string
	Blocks     int    // that it takes at most, 0 for as many as there is work for
	Few        int    // the same, with the policy efficiency or zero
	Note       string // the comment at the end of the line

	line int
}

// planVersions are the first lines that a file may have. A version is new where readers of the one
// before would err: version 2 has blocks.
var planVersions = []string{"ringo plan 1", "ringo plan 2"}

// maxPlan bounds the length of a file, in bytes.
const maxPlan = 1 << 20

// A PlanError is what is wrong with a plan. It wraps call.ErrInvalid.
type PlanError struct {
	Rank   int // whose Config names it
	File   string
	Line   int // 0 for the file as a whole
	Reason string
}

func (e *PlanError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%v: plan of rank %d: %s: %s; \"ringo tune\" writes a new one, and without RINGO_PLAN and "+
		"Config.Plan the built-in one counts", call.ErrInvalid, e.Rank, where, e.Reason)
}

func (e *PlanError) Unwrap() error { return call.ErrInvalid }

// ParsePlan reads the text of a plan. The error is a *PlanError.
func ParsePlan(name, text string) (*Plan, error) {
	p := &Plan{name: name}
	if len(text) > maxPlan {
		return nil, &PlanError{File: name, Reason: fmt.Sprintf("%d bytes are no plan", len(text))}
	}
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, maxPlan+1)
	n := 0
	for sc.Scan() {
		n++
		if err := p.line(n, strings.TrimSpace(sc.Text())); err != nil {
			return nil, &PlanError{File: name, Line: n, Reason: err.Error()}
		}
	}
	if n == 0 {
		return nil, &PlanError{File: name, Line: 1, Reason: errVersion.Error()}
	}
	return p, nil
}

var errVersion = fmt.Errorf("the first line must be %q or %q", planVersions[0], planVersions[1])

// line reads one line of the file.
func (p *Plan) line(n int, s string) error {
	if n == 1 {
		if !slices.Contains(planVersions, s) {
			return errVersion
		}
		return nil
	}
	text, note, _ := strings.Cut(s, "#")
	text, note = strings.TrimSpace(text), strings.TrimSpace(note)
	if text == "" {
		return nil
	}
	key, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	for name, field := range map[string]*string{"machine": &p.Machine, "driver": &p.Driver, "date": &p.Date,
		"path": &p.Path} {
		if key == name {
			if len(p.Rows) > 0 {
				return fmt.Errorf("%s stands after the first row", key)
			}
			*field = rest
			return p.checkHead()
		}
	}
	if key == "gpu" {
		if rest == "" {
			return errors.New("gpu without a name")
		}
		p.GPUs = append(p.GPUs, rest)
		return nil
	}
	row, err := parsePlanRow(strings.Fields(text))
	if err != nil {
		return err
	}
	row.Note, row.line = note, n
	for i := range p.Rows {
		if q := &p.Rows[i]; q.covers(&row) {
			return fmt.Errorf("line %d has all of this row's sizes: rows of a collective go from small to large", q.line)
		}
	}
	p.Rows = append(p.Rows, row)
	return nil
}

func (p *Plan) checkHead() error {
	if p.Path != "" && !slices.Contains(transport.GPUPathNames[transport.OverP2P:], p.Path) {
		return fmt.Errorf("path %q is none of %s", p.Path, strings.Join(transport.GPUPathNames[transport.OverP2P:], ", "))
	}
	return nil
}

// covers reports whether an earlier row leaves nothing to a later one.
func (r *PlanRow) covers(later *PlanRow) bool {
	return r.Kind == later.Kind && r.Registered == later.Registered && r.From <= later.From && later.To <= r.To &&
		r.most() >= later.most()
}

func (r *PlanRow) most() int64 {
	if r.UpTo < 0 {
		return math.MaxInt64
	}
	return r.UpTo
}

// parsePlanRow reads the five words of a row, or six.
func parsePlanRow(words []string) (r PlanRow, err error) {
	if len(words) < 5 || len(words) > 6 {
		return r, fmt.Errorf("%d words: a row is collective, ranks, any or registered, size, algorithm, and may have blocks",
			len(words))
	}
	if len(words) == 6 {
		if err := r.parseBlocks(words[5]); err != nil {
			return r, err
		}
	}
	if r.Kind, err = parsePlanKind(words[0]); err != nil {
		return r, err
	}
	if err := r.parseRanks(words[1]); err != nil {
		return r, err
	}
	switch words[2] {
	case "any":
	case "registered":
		r.Registered = true
	default:
		return r, fmt.Errorf("memory %q is neither any nor registered", words[2])
	}
	r.UpTo = -1
	if words[3] != "all" {
		n, err := setting.ParseSize(words[3])
		if err != nil {
			return r, fmt.Errorf("up to %q: want a size such as 64K, or all", words[3])
		}
		r.UpTo = int64(n)
	}
	err = r.parseAlgo(words[4], words[0])
	return r, err
}

// parseRanks reads 4, or 5-8.
func (r *PlanRow) parseRanks(s string) (err error) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	if r.From, err = strconv.Atoi(from); err == nil {
		r.To, err = strconv.Atoi(to)
	}
	if err != nil || r.From < 1 || r.To < r.From || r.To > maxPlanRanks {
		return fmt.Errorf("ranks %q: want a number, or two as in 5-8", s)
	}
	return nil
}

// parseAlgo reads an algorithm that the row's collective has for the row's memory.
func (r *PlanRow) parseAlgo(s, collective string) error {
	list := algorithmsOnGPUs(r.Kind, r.Registered)
	a, err := call.ParseAlgo(s)
	if err != nil || a == call.Auto {
		return fmt.Errorf("algorithm %q is none of %s", s, strings.Join(list, ", "))
	}
	r.Algo = a.String()
	if !slices.Contains(list, r.Algo) {
		why := ""
		if !r.Registered && (a == call.Window || a == call.Copies) {
			why = " for memory that may not be registered"
		}
		return fmt.Errorf("%s has no algorithm %s%s; it has %s", collective, r.Algo, why, strings.Join(list, ", "))
	}
	return nil
}

// parseBlocks reads 64, or 64/32 for the policies default and efficiency.
func (r *PlanRow) parseBlocks(s string) (err error) {
	all, few, both := strings.Cut(s, "/")
	if r.Blocks, err = strconv.Atoi(all); err == nil && both {
		r.Few, err = strconv.Atoi(few)
	}
	if err != nil || r.Blocks == 0 || both && r.Few == 0 || !validBlocks(r.Blocks, r.Few) {
		return fmt.Errorf("blocks %q: want 1 to %d, or two such as 64/32, the second for the policy efficiency", s,
			collective.MaxBlocks)
	}
	return nil
}

// validBlocks reports whether a row may have these blocks; 0 is none.
func validBlocks(blocks, few int) bool {
	return 0 <= few && few <= blocks && blocks <= collective.MaxBlocks
}

const maxPlanRanks = 1 << 18 // what a stamp can name

// planKinds are the collectives that a plan chooses for.
var planKinds = []call.Kind{call.AllReduce, call.AllGather, call.ReduceScatter, call.Broadcast, call.Reduce,
	call.AlltoAll, call.Gather, call.Scatter}

func parsePlanKind(s string) (call.Kind, error) {
	var known []string
	for _, k := range planKinds {
		if strings.EqualFold(s, k.String()) {
			return k, nil
		}
		known = append(known, strings.ToLower(k.String()))
	}
	return 0, fmt.Errorf("%q is neither a collective (%s) nor one of machine, driver, date, gpu, path", s,
		strings.Join(known, ", "))
}

// String is the text of the file.
func (p *Plan) String() string {
	var b strings.Builder
	blocks := slices.ContainsFunc(p.Rows, func(r PlanRow) bool { return r.Blocks > 0 })
	version, column := planVersions[0], "algorithm"
	if blocks {
		version, column = planVersions[1], "algorithm  blocks"
	}
	b.WriteString(version + "\n")
	head := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", key, value)
		}
	}
	head("machine", p.Machine)
	head("driver", p.Driver)
	head("date", p.Date)
	for _, g := range p.GPUs {
		head("gpu", g)
	}
	head("path", p.Path)
	b.WriteString("\n# Up to: bytes of the larger buffer of a rank, as ringo bench counts.\n")
	fmt.Fprintf(&b, "# %-12s %-6s %-11s %-6s %s\n", "collective", "ranks", "memory", "up to", column)
	for _, r := range p.Rows {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

// String is the line of the file.
func (r PlanRow) String() string {
	ranks, memory, upTo := strconv.Itoa(r.From), "any", "all"
	if r.To != r.From {
		ranks = fmt.Sprintf("%d-%d", r.From, r.To)
	}
	if r.Registered {
		memory = "registered"
	}
	if r.UpTo >= 0 {
		upTo = setting.FormatSize(r.UpTo)
	}
	s := fmt.Sprintf("%-14s %-6s %-11s %-6s %s", strings.ToLower(r.Kind.String()), ranks, memory, upTo, r.Algo)
	if r.Blocks > 0 {
		s = fmt.Sprintf("%-51s %d", s, r.Blocks)
		if r.Few > 0 {
			s += fmt.Sprintf("/%d", r.Few)
		}
	}
	if r.Note != "" {
		s += "  # " + r.Note
	}
	return s
}

// Sort orders the rows by collective, ranks, memory and size, registered first.
func (p *Plan) Sort() {
	slices.SortStableFunc(p.Rows, func(a, b PlanRow) int {
		memory := func(r *PlanRow) int {
			if r.Registered {
				return 0
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(slices.Index(planKinds, a.Kind), slices.Index(planKinds, b.Kind)),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(memory(&a), memory(&b)), cmp.Compare(a.most(), b.most()))
	})
}

// Matches reports whether a plan is for these GPUs and paths.
func (p *Plan) Matches(f *Fabric) bool {
	for _, g := range f.GPUs {
		if len(p.GPUs) > 0 && !slices.Contains(p.GPUs, g) {
			return false
		}
	}
	return p.Path == "" || p.Path == f.path()
}

// elsewhere says which GPU of a fabric the plan names and was not measured on, "" if there is
// none.
func (p *Plan) elsewhere(f *Fabric) string {
	for _, g := range f.GPUs {
		if slices.Contains(p.GPUs, g) && p.Machine != "" && !strings.Contains(p.Machine, g) {
			return fmt.Sprintf("; measured on %s, not on %s", p.Machine, g)
		}
	}
	return ""
}

// Scope says which GPUs and paths a plan is for.
func (p *Plan) Scope() string {
	return cmp.Or(strings.Join(p.GPUs, ", "), "any GPU") + ", " + cmp.Or(p.Path, "any path")
}

// Name is the name of the file, or where the plan is from.
func (p *Plan) Name() string { return p.name }

// A PlanSource is the text of a plan as it travels from rank 0 to the others, and
// on to the parts of a communicator that is split.
type PlanSource struct {
	Name, Text string
	Unread     string `json:",omitempty"` // why there is no text
}

// LoadPlan reads a file; without a name there is nothing to read. Parse returns the errors.
func LoadPlan(name string) PlanSource {
	if name == "" {
		return PlanSource{}
	}
	text, err := given.Read(name)
	if err != nil {
		return PlanSource{Name: name, Unread: err.Error()}
	}
	return PlanSource{Name: name, Text: string(text)}
}

// Parse is the plan, nil if there is none. The error is a *PlanError.
func (s *PlanSource) Parse() (*Plan, error) {
	switch {
	case s == nil || s.Name == "":
		return nil, nil
	case s.Unread != "":
		return nil, &PlanError{File: s.Name, Reason: s.Unread}
	}
	return ParsePlan(s.Name, s.Text)
}
