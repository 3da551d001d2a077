package hang

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

// An Answer is why a job stands still.
type Answer struct {
	Source   string // the kind of files, "" if there is one kind
	Ranks    int    // number of ranks of the job
	Reason   Reason
	Sentence string
	Remedy   string
	Culprits []int // global ranks, ascending; none where nobody is accused
	Missing  []int // ranks that left nothing
	Classes  []Class
	Notes    []string // of the job
	Either   bool     // the culprits are two sides, of which one may be right
	guessed  bool     // the numbers of ranks are not the program's, or not all ranks are known
	open     bool     // Job.Open
	own      bool     // Job.Own
	glance   bool     // Job.Glance, of a job that is held to stand still
	young    bool     // no rank has waited for long
}

// A Class is ranks that are at the same place.
type Class struct {
	Ranks []int
	Is    string // where they are
	For   []int  // ranks that have not come to the place where these wait, ascending
}

// Judge finds out why a job stands still. It sorts the calls of the ranks by time.
func Judge(j *Job) Answer {
	first := j.first()
	if first != nil {
		j.until(first)
		j.Patience = -1 // it has ended waits, however long they were
	}
	jd := newJudge(j)
	c := jd.find()
	if first != nil {
		c = jd.weigh(first, c)
	}
	a := Answer{guessed: j.Guessed || j.Open, open: j.Open, own: j.Own, Ranks: len(j.Ranks), Reason: c.Reason,
		Culprits: c.culprits, Either: c.either(), Notes: j.Notes}
	a.glance = j.Glance && c.Reason != Died && c.Reason != Silent
	a.young = c.Reason == Nothing && c.doubt != nil
	for r := range j.Ranks {
		if j.Ranks[r].Source == "" && !jd.old[r] {
			a.Missing = append(a.Missing, r)
		}
	}
	jd.say(&a, &c)
	var more []string
	if c.alike || c.Reason == Stuck {
		more = append(more, jd.suspects(c.at))
	}
	if len(c.culprits) > 0 && !c.quiet && c.Reason != Died {
		more = append(more, jd.filed(&c))
	}
	for _, text := range more {
		if text != "" {
			a.Notes = append(a.Notes, text)
		}
	}
	jd.classes(&a)
	return a
}

// Merge makes one answer of all answers about jobs of the same number of ranks: the surest one, or the first of several
// that are equally sure. The others become its notes, if they differ or blame the same ranks.
func Merge(answers []Answer) (merged []Answer) {
	sorted := slices.Clone(answers)
	for i := range sorted {
		sorted[i].glanced(answers)
	}
	slices.SortStableFunc(sorted, func(a, b Answer) int { return cmp.Compare(b.worth(), a.worth()) })
	var agree [][]string
	for _, a := range sorted {
		i := slices.IndexFunc(merged, func(m Answer) bool {
			return !(a.own && m.own) && (m.Ranks == a.Ranks || a.open && a.Ranks < m.Ranks || m.open && m.Ranks < a.Ranks)
		})
		if i < 0 {
			a.Notes = slices.Clone(a.Notes)
			merged, agree = append(merged, a), append(agree, nil)
			continue
		}
		switch m := &merged[i]; {
		case len(a.Culprits) > 0 && slices.Equal(m.Culprits, a.Culprits):
			agree[i] = append(agree[i], a.Source)
		case len(a.Culprits) > 0 || sure[m.Reason] == 0 && a.Reason != Unknown && a.Sentence != m.Sentence:
			m.Notes = append(m.Notes, a.Source+" says: "+a.Sentence)
		}
	}
	for i, sources := range agree {
		if n := len(sources); n > 0 {
			text := strings.Join(sources, " and ")
			if n > 2 {
				text = strings.Join(sources[:n-1], ", ") + " and " + sources[n-1]
			}
			merged[i].Notes = append(merged[i].Notes,
				fmt.Sprintf("%s %s %s too", text, map[bool]string{true: "blames", false: "blame"}[n == 1],
					history.Ranks(merged[i].Culprits)))
		}
	}
	return merged
}

// glanced takes an accusation of one look back where another answer shows that no rank has waited for long.
func (a *Answer) glanced(others []Answer) {
	if a.glance && slices.ContainsFunc(others, func(b Answer) bool { return b.young && b.Ranks == a.Ranks }) {
		a.Reason, a.Culprits, a.guessed = Unknown, nil, true
	}
}

// sure is how certain a reason is: a death was seen (3), a missing file may be an oversight (1).
var sure = [Reasons]int{
	Silent: 1, Stuck: 1, Blocked: 2, Order: 2, Slow: 2, Short: 2, NotMade: 2, Absent: 2, Roots: 2, Shapes: 2, Different: 2,
	Link: 2, Died: 3, Failed: 3,
}

func (a *Answer) worth() int {
	if a.guessed {
		return 2*sure[a.Reason] - 1
	}
	return 2 * sure[a.Reason]
}

// say writes the sentence and the remedy.
func (jd *judge) say(a *Answer, c *cause) {
	who := jd.who(c.culprits)
	if c.doubt != nil {
		jd.sayDoubt(a, c)
		return
	}
	if c.verdict != nil {
		jd.sayVerdict(a, c)
		return
	}
	switch c.Reason {
	case Nothing:
		a.Sentence = "no rank waits: all calls that the ranks have noted have ended"
		if lost := jd.lostAnywhere(); len(lost) > 0 { // these may wait
			a.Reason = Unknown
			if a.Sentence = "I cannot say, because " + jd.missing(lost); len(lost) < len(jd.Ranks) {
				a.Sentence += "; no other rank waits"
			}
			a.Remedy = jd.fetch(lost)
		}
	case Unknown, Died, Silent:
		if c.quiet {
			jd.sayQuiet(a, c)
			return
		}
	}
	switch c.Reason {
	case Unknown:
		jd.sayUnknown(a, c)
	case Died:
		a.Sentence = fmt.Sprintf("%s %s; %s", who, jd.death(c.culprits), jd.waiting(c.at))
		a.Remedy = jd.readLog(c.culprits, who)
	case Link:
		a.Sentence = fmt.Sprintf("nothing moves between %s in %s; %s", history.Ranks(c.culprits), jd.what(c.at),
			jd.waiting(c.at))
		a.Remedy = "run ringo check between their hosts"
	case Silent:
		a.Sentence = fmt.Sprintf("%s %s: dead, stopped, or cut off; %s", who, jd.quietly(c.culprits), jd.waiting(c.at))
		a.Remedy = "look whether the process of " + who + " lives, and at the end of its log"
	case NotMade:
		a.Sentence = fmt.Sprintf("%s never made %s; %s", who, &jd.Groups[c.at.group], jd.waiting(c.at))
		a.Remedy = "all ranks have to call new_group for every group, in the same order, also for groups that they are not in"
	case Absent:
		called := "called"
		if jd.Own {
			who, called = history.Ranks(c.culprits), "entered" // as errors say it; the remedy names the process
		}
		a.Sentence = fmt.Sprintf("%s never %s %s%s%s; %s", who, called, jd.what(c.at), jd.stands(c.culprits),
			jd.unnoted(c.culprits), jd.waiting(c.at))
		a.Remedy = jd.inspect(c.culprits)
		if l := jd.limit(c.at); l > 0 && l <= time.Minute {
			a.Remedy += fmt.Sprintf("; if it is only slow, the time-out of %v is too short", l)
		}
	case Slow, Short:
		jd.sayTimes(a, c)
	case Different, Shapes, Roots:
		a.Sentence = jd.difference(c)
		a.Remedy = "make all ranks of a group call the same collectives in the same order, with the same types and sizes"
	case Order:
		a.Sentence = jd.crossed(c)
		a.Remedy = "call collectives of several groups, and messages, in one order on all ranks"
	case Blocked:
		a.Sentence = fmt.Sprintf("%s %s called %s%s, and %s not begun it: something before it on the GPU does "+
			"not end; %s", who, verb(c.culprits, "has", "have"), jd.what(c.at), jd.line(c.at, c.culprits),
			verb(c.culprits, "its GPU has", "their GPUs have"), jd.begun(c.at))
		a.Remedy = "see which kernel runs there: cuda-gdb, or nsys; a kernel that spins, or another library's collective"
	case Stuck:
		in := fmt.Sprintf("nothing moves although %s %s in %s%s", who, verb(c.culprits, "is", "all are"), jd.what(c.at),
			jd.line(c.at, c.culprits))
		a.Sentence = in + ": network, GPU, or an argument that the files do not have, as the root"
		a.Remedy = "run ringo check on these hosts"
		a.Culprits = nil
		if len(jd.Faults) > 0 {
			a.Sentence = in + "; " + jd.Faults[0]
			a.Remedy = "run ringo check between the two hosts of that error"
		}
	}
}

// sayUnknown writes why there is no verdict.
func (jd *judge) sayUnknown(a *Answer, c *cause) {
	a.Sentence = fmt.Sprintf("I cannot say: %s, and the files do not show for whom", jd.waiting(c.at))
	if lost := jd.lost(c.at); len(lost) > 0 {
		a.Sentence = fmt.Sprintf("I cannot say, because %s; %s", jd.missing(lost), jd.waiting(c.at))
		a.Remedy = jd.fetch(lost)
	}
	if len(c.sides) > 1 {
		text := jd.difference
		one, other := c.sides[0].call, c.sides[1].call
		if c.at.number < 0 || one.Group != other.Group || one.Number != other.Number {
			text = jd.crossed
		}
		a.Sentence = fmt.Sprintf("I cannot say which side is right, because %s: %s", jd.missing(c.unproven), text(c))
		a.Remedy = jd.fetch(c.unproven)
	}
	if c.alike {
		open := jd.open(c.at)
		a.Sentence = fmt.Sprintf("I cannot say: %s %s called %s%s, alike as far as the files show, and it does not "+
			"end: a GPU is busy with something before it, the network, "+
			"or an argument that no dump has, as the root", history.Ranks(open), verb(open, "has", "all have"), jd.what(c.at),
			jd.line(c.at, open))
		a.Remedy = "look with cuda-gdb or nsys which kernels run; the next time TORCH_NCCL_ENABLE_TIMING=1 has dumps show " +
			"whose GPU has begun it, " +
			"and NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,COLL has logs show roots"
	}
	if len(c.most) > 0 {
		a.Sentence = fmt.Sprintf("I cannot say: %s, which %s, most of its ranks, have not called: either they are late, or "+
			"this is a call too many", jd.waiting(c.at), history.Ranks(c.most))
		a.Remedy = "look where the program makes this call, and where the others stand: py-spy dump --pid PID"
	}
	if len(c.old) > 0 {
		a.Sentence = fmt.Sprintf("I cannot say, because the files of %s are of another time, or run, than those of the "+
			"others; %s", history.Ranks(c.old), jd.waiting(c.at))
		a.Remedy = "take the files of all ranks at one moment, after the time-out"
	}
}

// unnoted tells, after a comma, of a message that an absent rank may wait in though its dump has none: the first
// message to a peer makes a communicator, and is noted only when the peer has come too.
func (jd *judge) unnoted(ranks []int) string {
	r := &jd.Ranks[ranks[0]]
	if len(ranks) > 1 || !r.Alone || r.Stack != "" ||
		slices.ContainsFunc(r.Calls, func(c Call) bool { return c.message() }) {
		return ""
	}
	return ", and its log tells of a send or recv, which no dump has before its peer has come to it"
}

// readLog is the remedy for ranks that have ended.
func (jd *judge) readLog(ranks []int, who string) string {
	text := "read the end of the log of " + who
	if strings.Contains(jd.death(ranks), "CUDA error") {
		text += "; CUDA tells an error at a later call than the one that failed: CUDA_LAUNCH_BLOCKING=1 shows that"
	}
	return text
}

// inspect is the remedy for absent ranks: how to see what they do.
func (jd *judge) inspect(ranks []int) string {
	r := &jd.Ranks[ranks[0]]
	pid := "PID"
	if r.Pid > 0 {
		pid = fmt.Sprint(r.Pid)
	}
	switch {
	case jd.Own && r.Stack == "" && r.Pid > 0:
		return fmt.Sprintf("see what %s does: on host %s kill -QUIT %d has a Go program print its stacks, and py-spy dump "+
			"--pid %[3]d shows those of Python", history.Ranks(ranks[:1]), r.Host, r.Pid)
	case r.Stack != "":
		return "see why " + history.Ranks(ranks[:1]) + " does not go on from there"
	case r.Name != "":
		return fmt.Sprintf("see what %s does (%s): py-spy dump --pid %s", history.Ranks(ranks[:1]), r.Name, pid)
	}
	return fmt.Sprintf("see what %s %s there: py-spy dump --pid %s", history.Ranks(ranks), verb(ranks, "does", "do"), pid)
}

// quietly is the verb for silent ranks.
func (jd *judge) quietly(ranks []int) string {
	for _, r := range ranks {
		if !jd.Ranks[r].Mute {
			return "left nothing"
		}
	}
	if jd.Own {
		return verb(ranks, "does not answer the others", "do not answer the others")
	}
	return verb(ranks, "does not answer RAS", "do not answer RAS")
}

// who names ranks, and their processes if they are few.
func (jd *judge) who(ranks []int) string {
	const most = 2
	text := history.Ranks(ranks)
	if len(ranks) > most {
		return text
	}
	var names []string
	for _, r := range ranks {
		if n := jd.Ranks[r].Name; n != "" {
			names = append(names, n)
		}
	}
	if len(names) > 0 {
		text += " (" + strings.Join(names, "; ") + ")"
	}
	return text
}

// what is the call at a place, in words.
func (jd *judge) what(at place) string {
	if at.number < 0 {
		return fmt.Sprintf("its end of a message from rank %d to rank %d", at.from, at.to)
	}
	name := fmt.Sprintf("collective #%d", at.number)
	for _, r := range jd.members(at) {
		if c := jd.in(at, r); c != nil && (c.message() || c.Kind != "") {
			name = c.name()
			break
		}
	}
	return name + " of " + jd.Groups[at.group].String()
}

// line is the program's line that made the call at a place, " (train.py:40 in step)"; "" if not known.
func (jd *judge) line(at place, ranks []int) string {
	for _, r := range ranks {
		if c := jd.in(at, r); c != nil && c.Where != "" {
			return " (" + c.Where + ")"
		}
	}
	return ""
}

// waiting says who waits at a place, and where in the program.
func (jd *judge) waiting(at place) string {
	ranks := jd.open(at)
	return fmt.Sprintf("%s %s in %s%s%s", history.Ranks(ranks), verb(ranks, "waits", "wait"), jd.what(at),
		jd.line(at, ranks), jd.since(at, ranks))
}

// since is for how long ranks have waited at a place, " since 4.9s"; "" if not known.
func (jd *judge) since(at place, ranks []int) string {
	var waited time.Duration
	for _, r := range ranks {
		if w := jd.in(at, r).Wait; w != nil {
			waited = max(waited, w.Waited)
		}
	}
	if waited == 0 {
		return ""
	}
	return " since " + history.Spell(waited).String()
}

// begun says which ranks have begun the call at a place.
func (jd *judge) begun(at place) string {
	ranks := slices.DeleteFunc(jd.open(at), func(r int) bool { return jd.in(at, r).State == Called })
	return fmt.Sprintf("%s %s in it", history.Ranks(ranks), verb(ranks, "waits", "wait"))
}

// limit is the longest time-out of the calls at a place, 0 if there is none.
func (jd *judge) limit(at place) (l time.Duration) {
	for _, r := range jd.members(at) {
		if c := jd.in(at, r); c != nil {
			l = max(l, c.Limit)
		}
	}
	return l
}

func verb(ranks []int, one, many string) string {
	if len(ranks) == 1 {
		return one
	}
	return many
}

// death says how ranks have ended, if they have all ended alike.
func (jd *judge) death(ranks []int) string {
	how := jd.Ranks[ranks[0]].end()
	for _, r := range ranks {
		if jd.Ranks[r].end() != how {
			return "have ended"
		}
	}
	if rest, ok := strings.CutPrefix(how, "was "); ok {
		return verb(ranks, "was ", "were ") + rest
	} else if rest, ok := strings.CutPrefix(how, "has "); ok {
		return verb(ranks, "has ", "have ") + rest
	}
	return how
}

// end is how a rank has ended.
func (r *Rank) end() string { return cmp.Or(r.Death, r.Raised) }

// stands says, after a comma, where absent ranks stand instead.
func (jd *judge) stands(ranks []int) string {
	r := &jd.Ranks[ranks[0]]
	one := ""
	if len(ranks) > 1 {
		one = fmt.Sprintf("rank %d's ", ranks[0])
	}
	switch {
	case r.Stack != "" && len(ranks) > 1:
		return fmt.Sprintf(", rank %d stands at %s", ranks[0], r.Stack)
	case r.Stack != "":
		return ", it stands at " + r.Stack
	case len(r.Calls) == 0:
		return ", nor any other"
	}
	last := &r.Calls[len(r.Calls)-1]
	if one == "" {
		one = "its "
	}
	text := fmt.Sprintf(", %slast call was %s of %s", one, last.name(), &jd.Groups[last.Group])
	if last.Where != "" {
		text += " (" + last.Where + ")"
	}
	return text
}

// difference says how the calls of the two sides differ.
func (jd *judge) difference(c *cause) string {
	one, other := c.sides[0], c.sides[1]
	where := func(s side) string {
		if s.call.Where != "" {
			return " (" + s.call.Where + ")"
		}
		return ""
	}
	group, reason := &jd.Groups[c.at.group], c.Reason
	if reason == Unknown && other.shift == 0 {
		reason = distinct(one.call, other.call)
	}
	switch {
	case reason == Shapes && c.at.number < 0:
		return fmt.Sprintf("rank %d sends %s%s to rank %d, which receives %s%s", c.at.from, one.call.In, where(one), c.at.to,
			other.call.Out, where(other))
	case reason == Roots:
		return fmt.Sprintf("%s called %s of %s with %s%s, and %s with %s%s", history.Ranks(other.ranks), other.call.name(),
			group, rooted(other.call), where(other),
			history.Ranks(one.ranks), rooted(one.call), where(one))
	case reason == Shapes && jd.Own:
		return fmt.Sprintf("as collective #%d of %s %s called %s, and %s %s", c.at.number, group,
			history.Ranks(one.ranks), one.call.Sign, history.Ranks(other.ranks), other.call.Sign)
	case reason == Shapes:
		return fmt.Sprintf("%s called %s of %s with %s%s, and %s with %s%s", history.Ranks(other.ranks), other.call.name(),
			group, other.call.In, where(other),
			history.Ranks(one.ranks), one.call.In, where(one))
	case other.shift > 0:
		return fmt.Sprintf("%s left out %s of %s%s: what %s called there, %s%s, %s next",
			history.Ranks(other.ranks), one.call.name(), group, where(one), verb(other.ranks, "it", "they"), other.call.Kind,
			where(other), verb(one.ranks, "the other calls", "the others call"))
	case other.shift < 0:
		return fmt.Sprintf("%s called %s of %s%s, which %s did not: what %s called there, %s%s, %s next",
			history.Ranks(other.ranks), other.call.name(), group, where(other),
			history.Ranks(one.ranks), verb(one.ranks, "it", "they"), one.call.Kind, where(one),
			verb(other.ranks, "the other calls", "the others call"))
	}
	return fmt.Sprintf("as collective #%d of %s %s called %s%s, and %s %s%s", c.at.number, group,
		history.Ranks(other.ranks), other.call.Kind, where(other),
		history.Ranks(one.ranks), one.call.Kind, where(one))
}

// distinct is the reason for which two calls of one place do not meet.
func distinct(a, b *Call) Reason {
	switch {
	case family(a) != family(b):
		return Different
	case equal(a) == equal(b) && rooted(a) != rooted(b):
		return Roots
	}
	return Shapes
}

// classes groups ranks by the place where they are, into at most 20 classes.
func (jd *judge) classes(a *Answer) {
	by := map[string][]int{}
	for r := range jd.Ranks {
		by[jd.words(r)] = append(by[jd.words(r)], r)
	}
	for is, ranks := range by {
		a.Classes = append(a.Classes, Class{Ranks: ranks, Is: is, For: jd.awaited(ranks)})
	}
	slices.SortFunc(a.Classes, func(x, y Class) int { return cmp.Compare(x.Ranks[0], y.Ranks[0]) })
	const most = 20
	if len(a.Classes) > most {
		rest := Class{Is: "at other places"}
		for _, c := range a.Classes[most-1:] {
			rest.Ranks = append(rest.Ranks, c.Ranks...)
		}
		slices.Sort(rest.Ranks)
		a.Classes = append(a.Classes[:most-1], rest)
	}
}

// awaited are the ranks that have not come to the places in which these ranks wait.
func (jd *judge) awaited(ranks []int) (absent []int) {
	seen := map[place]bool{}
	for _, r := range ranks {
		if len(jd.waits[r]) == 0 {
			continue
		}
		at := jd.earliest(r, jd.waits[r][0])
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, m := range jd.members(at) {
			if jd.in(at, m) == nil && !jd.passed(at, m) {
				absent = append(absent, m)
			}
		}
	}
	slices.Sort(absent)
	return slices.Compact(absent)
}

// words say where a rank is.
func (jd *judge) words(r int) string {
	rank := &jd.Ranks[r]
	switch {
	case rank.Death != "", rank.Raised != "" && len(jd.waits[r]) == 0:
		return rank.end()
	case jd.old[r]:
		return "left a file of another time"
	case rank.Source == "":
		return jd.left(r)
	case len(jd.waits[r]) > 0 || jd.newest(r) != nil:
		c := jd.newest(r)
		if len(jd.waits[r]) > 0 {
			c = jd.waits[r][0]
		}
		text := c.State.String() + " " + c.name()
		if !c.message() {
			text += " of " + jd.Groups[c.Group].String()
		}
		if c.Where != "" {
			text += ", " + c.Where
		}
		if !c.message() {
			text += c.Wait.inside(len(jd.Ranks))
		}
		return text
	case len(rank.Calls) == 0:
		return "no call"
	}
	return "in no call" + jd.stands([]int{r})
}

// Print writes the answer and the table of ranks.
func (a *Answer) Print(w io.Writer) error {
	fmt.Fprintln(w, a.Sentence)
	switch {
	case a.Either:
		fmt.Fprintf(w, "to blame: one side of %s: they are as many, and which is right the files do not show\n",
			history.Ranks(a.Culprits))
	case len(a.Culprits) > 0:
		fmt.Fprintf(w, "to blame: %s\n", history.Ranks(a.Culprits))
	}
	if a.Remedy != "" {
		fmt.Fprintf(w, "remedy: %s\n", a.Remedy)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nranks\tare")
	for _, c := range a.Classes {
		fmt.Fprintf(t, "%s\t%s\n", spans(c.Ranks), c.Is)
	}
	return t.Flush()
}

// spans writes ranks as "0-2,5".
func spans(ranks []int) string {
	var words []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		word := fmt.Sprint(ranks[i])
		if k > i {
			word = fmt.Sprintf("%d-%d", ranks[i], ranks[k])
		}
		if words = append(words, word); len(words) == 12 && k+1 < len(ranks) {
			words = append(words, fmt.Sprintf("and %d more", len(ranks)-k-1))
			break
		}
		i = k + 1
	}
	return strings.Join(words, ",")
}
