package check

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/mem"
)

// collectiveStage has all ranks carry out collectives on host memory, and verifies the results. If a
// result is wrong, parts of the job are tried until the faulty ranks or links are known.
func collectiveStage() stage {
	return stage{
		Name: "collectives", Asks: "Are all-reduce, all-gather and all-to-all right over all ranks, and if not, on whose " +
			"account?",
		Quick: 12 * time.Second, Full: 90 * time.Second,
		Measure: measureCollectives, Judge: judgeHostCollectives,
	}
}

// A trial is rank 0's next task for the ranks: each group is a communicator, all side by side.
type trial struct {
	Groups [][]int
	Ports  []string // by group: the port at which it meets, at the first rank; each rank knows that rank's address
	Found  found    // the result, once there are no more groups
	Skip   string   // why there is nothing to try
}

// trialTime bounds the waits of a trial, from the time left in its stage.
func trialTime(left time.Duration) time.Duration { return max(2*time.Second, left*2/5) }

func measureCollectives(ctx context.Context, j *job) ([]measurement, error) {
	var b *bisection
	if j.First() {
		if b = newBisection(j.Live()); len(j.Live()) < 2 {
			return nil, skip("there is one rank")
		}
	} else if len(j.Live()) < 2 {
		return nil, skip("there is one rank")
	}
	var list []measurement
	for step := 0; ; step++ {
		var t trial
		var ids []bootstrap.ID
		var err error
		if j.First() {
			if t, ids, err = j.announce(b, step); err != nil {
				return nil, err
			}
		}
		if t, err = told(ctx, j, t); err != nil {
			return nil, err
		}
		if t.Skip != "" {
			return nil, skip("%s", t.Skip)
		}
		if len(t.Groups) == 0 {
			if j.First() {
				list = append(list, j.blamed(t.Found)...)
			}
			return list, nil
		}
		took, err := j.try(ctx, t, step)
		if step == 0 && j.First() && err == nil {
			list = append(list, measurement{Quantity: "all-reduce of 1 MiB", Value: took.Seconds(), Unit: "s"})
		}
		said := ""
		if err != nil {
			said = err.Error()
			list = append(list, measurement{Subject: j.self(), Quantity: "trial", Value: float64(step), Text: said})
		}
		parts, err := j.Collect(ctx, []byte(said))
		if err != nil {
			return nil, err
		}
		if j.First() {
			b.learn(results(t.Groups, parts))
			for _, id := range ids {
				bootstrap.Stop(id)
			}
		}
	}
}

// self is the subject of this rank.
func (j *job) self() subject { return of(j.Host(), fmt.Sprint("rank ", j.rank)) }

// results reports which groups did well: those whose ranks all gave an empty part.
func results(groups [][]int, parts [][]byte) []bool {
	well := make([]bool, len(groups))
	for i, g := range groups {
		well[i] = !slices.ContainsFunc(g, func(r int) bool { return parts[r] == nil || len(parts[r]) > 0 })
	}
	return well
}

// announce is rank 0's message about the next step, and the meeting points that rank 0 serves for it.
func (j *job) announce(b *bisection, step int) (t trial, ids []bootstrap.ID, err error) {
	t = trial{Groups: b.next(), Found: b.found, Skip: j.spoilt}
	if t.Skip != "" {
		t.Groups = nil
	}
	at := ":0" // ranks may reach it at different addresses
	if isLoopback(j.meetAt) {
		at = net.JoinHostPort(j.meetAt, "0")
	}
	for i := range t.Groups {
		if j.collects != nil {
			t.Ports = append(t.Ports, "")
			continue
		}
		id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: at, Key: j.meetKey(step, i), TLS: j.tls})
		if err != nil {
			return t, nil, err
		}
		_, port, err := net.SplitHostPort(id.Addr())
		if err != nil {
			return t, nil, err
		}
		ids, t.Ports = append(ids, id), append(t.Ports, port)
	}
	return t, ids, nil
}

// meetKey is the key of a group's meeting point. Each rank computes it, so that it is never sent.
func (j *job) meetKey(step, group int) []byte {
	h := hmac.New(sha256.New, j.key)
	fmt.Fprintf(h, "check %d %d %d", j.at, step, group)
	return h.Sum(nil)
}

// try is this rank's part of a trial: it is in one group at most.
func (j *job) try(ctx context.Context, t trial, step int) (took time.Duration, err error) {
	i := slices.IndexFunc(t.Groups, func(g []int) bool { return slices.Contains(g, j.rank) })
	if i < 0 || i >= len(t.Ports) {
		return 0, nil
	}
	if j.collects != nil {
		start := time.Now()
		err := j.collects(ctx, t.Groups[i], step)
		return time.Since(start), err
	}
	id, err := bootstrap.IDOf(net.JoinHostPort(j.meetAt, t.Ports[i]), j.meetKey(step, i))
	if err != nil {
		return 0, err
	}
	end, _ := ctx.Deadline()
	patience := trialTime(time.Until(end))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := ringo.Open(ctx, ringo.Config{ID: &id, Rank: slices.Index(t.Groups[i], j.rank), Size: len(t.Groups[i]),
		Timeout: patience, JoinTimeout: patience, HostID: j.members[j.rank].ID})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Abort(context.Cause(ctx)) })()
	return verifiedOnHosts(c, j.cfg.tamper[j.rank])
}

// verifiedOnHosts carries out collectives whose results every rank knows, and gives the time of an all-reduce.
// tamper, in tests, changes what this rank contributes.
func verifiedOnHosts(c *ringo.Comm, tamper func([]uint32)) (took time.Duration, err error) {
	for _, k := range []ringo.Kind{ringo.KindAllGather, ringo.KindAlltoAll, ringo.KindAllReduce} {
		e := newExercise(k, 1<<18, c.Size())
		in, out := e.input(c.Rank()), make([]uint32, e.out)
		if tamper != nil {
			tamper(in)
		}
		start := time.Now()
		if err := c.Do(&ringo.Call{Kind: k, In: mem.Of(in), Out: mem.Of(out), Count: e.count, Type: ringo.Uint32,
			Op: ringo.Sum}); err != nil {
			return 0, err
		}
		took = time.Since(start)
		if err := e.verify(c.Rank(), out); err != nil {
			return 0, err
		}
	}
	return took, ringo.Barrier(c)
}

// What trials have shown beside a failure.
const (
	othersWell  = "others did well"
	nothingWell = "nothing did well"
)

// blamed turns the bisection's result into measurements.
func (j *job) blamed(t found) (list []measurement) {
	rest := ""
	if t.Some {
		rest = othersWell
	} else if len(j.Live()) > 2 {
		return []measurement{{Quantity: "fails", Text: nothingWell}}
	}
	for _, r := range t.Ranks {
		list = append(list, measurement{Subject: of(j.members[r].Host, fmt.Sprint("rank ", r)), Quantity: "fails",
			Text: rest})
	}
	pairs := func(links [][2]int, text string) {
		for _, l := range links {
			list = append(list, measurement{Subject: pairOf(j.component(l[0]), j.component(l[1])), Quantity: "fails",
				Text: text})
		}
	}
	pairs(t.Links, othersWell)
	pairs(t.Alone, "")
	if t.Across {
		list = append(list, measurement{Quantity: "fails"})
	}
	return list
}

// judgeHostCollectives names ranks and links whose collectives fail. Wrong data accuse by themselves. Others fail for
// want of an answer: where the stage of the network has a finding that may be why, no rank is named.
func judgeHostCollectives(r *report, _ *config) []finding {
	f := &findings{r: r}
	var why string
	wrong := false
	trials := r.Of("collectives", "trial")
	if len(trials) > 0 {
		why = firstLine(trials[0].Text)
	}
	// The text of a trial with wrong data tells more than that of one that ran out of time.
	for _, t := range trials {
		if wrong = strings.Contains(t.Text, " and not "); wrong {
			why = firstLine(t.Text)
			break
		}
	}
	for _, m := range r.Of("collectives", "fails") {
		if r.IsLost(m.Subject.Host) || r.IsLost(m.Subject.To.Host) {
			continue
		}
		cause, known := f.onTheWay(m.Subject, wrong)
		switch {
		case known && f.has("collective", subject{}):
		case known:
			f.add(broken, "collective", subject{}, 20, "collectives fail: %s; what the stage of the network has found may be "+
				"why (%s), so no rank is named: mend that first, then check again", why, cause)
		case m.Subject.IsPair():
			others := ""
			if m.Text == othersWell {
				others = ", and each does well with others"
			}
			f.add(broken, "collective-link", m.Subject, 20, "collectives of these two fail%s: %s; look at the way between them",
				others, why)
		case m.Text == nothingWell:
			f.add(broken, "collective", m.Subject, 20,
				"no collective does well, over all ranks or over any part that was tried: %s; look at what all have in common, "+
					"such as the way to the first rank, where they meet", why)
		case m.Subject == subject{}:
			f.add(broken, "collective", m.Subject, 20, "collectives over all ranks fail, and those over parts do well: %s", why)
		default:
			others, remedy := "", "look at what its process says, and at the way between its host and the first rank's, where "+
				"ranks meet"
			if m.Text == othersWell {
				others = ", and some without it do well"
			}
			if wrong {
				remedy = "test its memory and processor, and take its host out of use"
			}
			f.add(broken, "collective-rank", m.Subject, 20, "collectives with this rank fail%s: %s; %s", others, why, remedy)
		}
	}
	if len(f.list) == 0 && len(trials) > 0 &&
		!slices.ContainsFunc(r.Hosts, func(h hostReport) bool { return len(h.Lost) > 0 }) {
		f.add(unjudged, "collective-once", trials[0].Subject, 1,
			"collectives failed once and did well when they were tried again in parts: %s", why)
	}
	return f.list
}

// onTheWay returns a finding of the network that may be why collectives of a subject fail: about all hosts, about one
// of the subject's, or about the first host, where ranks meet. Wrong data come of flipped bits alone.
func (f *findings) onTheWay(s subject, wrong bool) (string, bool) {
	hosts := []string{"", s.Host, s.To.Host}
	if len(f.r.Hosts) > 0 {
		hosts = append(hosts, f.r.Hosts[0].Name)
	}
	for _, o := range f.r.Findings {
		about := slices.Contains(hosts, o.Subject.Host) || slices.Contains(hosts, o.Subject.To.Host) && o.Subject.IsPair() ||
			s == subject{} || o.Code == "loss" // which has parts fail by chance
		if o.Stage == "network" && o.Severity != well && about && (!wrong || o.Code == "corrupt-link") {
			return o.Code + " of " + o.Subject.String(), true
		}
	}
	return "", false
}
