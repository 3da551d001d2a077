package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringo-go/ringo"
)

// grace is how long a stage may go on after its limit before it is left behind. Ranks then have
// as long again to report it.
const grace = 2 * time.Second

// Limits of all stages together. A stage is left out if less than one leastPart-th of its own limit is left, since it
// would measure too little.
const (
	withinQuick = 30 * time.Second
	withinFull  = 10 * time.Minute
	leastPart   = 4
	forever     = time.Duration(math.MaxInt64)
	noTime      = "no time left"
)

// A share is a rank's message at the end of a stage.
type share struct {
	Measurements []measurement
	Error, Skip  string
	Stuck        bool // Measure has not ended
	Took         time.Duration
}

// run carries out the stages as one rank of the job; all ranks call it with the same config. Rank 0 gets
// the report; the others get nil. It is an error if the check could not be carried to its end: rank
// 0 is gone, this rank was taken for lost, or ctx has ended. Then rank 0's report has the results
// until then, with the verdict unjudged if nothing worse was found.
func run(ctx context.Context, j *job, cfg config) (*report, error) {
	cfg.Within = cfg.within()
	if cfg.Stages == nil {
		cfg.Stages = cfg.stages()
	}
	j.cfg, j.spoilt = &cfg, ""
	started := j.begin(cfg.Within)
	cfg.shared = j.shared()
	var r *report
	if j.First() {
		r = newReport(j, started)
	}
	var err error
	var out []string // stages that were left out
	for i := range cfg.Stages {
		s := &cfg.Stages[i]
		limit := s.limit(cfg.Full)
		if limit == 0 {
			continue
		}
		most := j.remaining() - 2*grace
		if most < limit/leastPart {
			if r != nil {
				r.Stages = append(r.Stages, stageReport{Name: s.Name, Asks: s.Asks, Limit: limit.Seconds(), Skipped: noTime})
				out = append(out, s.Name)
			}
			continue
		}
		if cfg.Progress != nil && r != nil {
			cfg.Progress(s.Name, float64(i)/float64(len(cfg.Stages)))
		}
		if err = j.stage(ctx, s, min(limit, most), r); err != nil {
			break
		}
	}
	if r == nil {
		if absent, ok := errors.AsType[*absentError](err); ok && absent.Who == j.component(j.rank) {
			absent.wait = j.outlast
		}
		return nil, err
	}
	if len(out) > 0 {
		r.Findings = append(r.Findings, finding{Severity: unjudged, Code: "no-time", Stage: out[0], Text: fmt.Sprintf(
			"what was measured took so much of the %v that nothing is left for %s: look at the stages that ran to their "+
				"limits, or take more time", cfg.Within, strings.Join(out, ", "))})
	}
	if err != nil {
		r.Findings = append(r.Findings, finding{Severity: unjudged, Code: "cut-short", Stage: j.name,
			Text: fmt.Sprintf("the check was cut short in stage %s: %v", j.name, err)})
	}
	if cfg.Baseline != nil {
		r.Findings = append(r.Findings, r.compare(cfg.Baseline, &cfg)...)
	}
	r.Took = time.Since(started).Seconds()
	r.excuse()
	r.excuseLosses()
	r.judged()
	return r, err
}

// stages are the stages that the flags ask for.
func (c *config) stages() []stage {
	list := stages()
	if c.NoGPUs {
		return slices.DeleteFunc(list, func(s stage) bool { return strings.HasPrefix(s.Name, "GPU") })
	}
	if c.NCCL != "" {
		list = append(list, ncclStage()) // last, since a hanging collective of NCCL holds the GPUs
	}
	return list
}

// newReport is rank 0's report before the first stage: the hosts, and who did not come.
func newReport(j *job, started time.Time) *report {
	r := &report{Schema: schema, Version: ringo.Version, Started: started.UTC().Truncate(time.Second), Full: j.cfg.Full,
		Findings: []finding{}}
	for _, h := range j.Hosts() {
		m := j.members[h[0]]
		r.Hosts = append(r.Hosts, hostReport{Name: m.Host, Ranks: h})
		r.Measurements = append(r.Measurements, measurement{Stage: rendezvous, Rank: h[0], Subject: of(m.Host, ""),
			Quantity: "ringo", Text: cmp.Or(m.Version, "of an older version")})
	}
	r.lose(j, j.losses(), rendezvous)
	r.tell(j)
	for _, f := range duplicates(r) {
		r.Findings = append(r.Findings, f)
		j.spoilt = spoils[f.Code]
	}
	for _, o := range unlike(r.Of(rendezvous, "ringo")) {
		r.Findings = append(r.Findings, finding{Severity: degraded, Code: "version-differs", Stage: rendezvous,
			Subject: o.Subject,
			Text: fmt.Sprintf("its ringo is %s, and %s on %s: install one version everywhere, for ranks of different ones may "+
				"not understand each other", o.Text, o.most, o.who)})
	}
	return r
}

// rendezvous is the stage before all others, by name.
const rendezvous = "rendezvous"

// outlast returns when the others, which go on without this rank, have ended, or their time is over.
func (j *job) outlast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, min(max(j.remaining(), 0), withinFull)+2*grace)
	defer cancel()
	j.star.outlast(ctx.Done())
}

// stage carries out one stage on this rank, and judges it on rank 0, which has a report.
func (j *job) stage(ctx context.Context, s *stage, limit time.Duration, r *report) error {
	j = j.enter(s.Name)
	start, before := time.Now(), j.losses()
	mine := j.measure(ctx, s, limit)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	wait, cancel := context.WithDeadline(ctx, start.Add(limit+2*grace))
	defer cancel()
	all, err := parts(wait, j.conclude, mine)
	if err != nil || r == nil {
		return err
	}
	report := stageReport{Name: s.Name, Asks: s.Asks, Limit: limit.Seconds(), Took: time.Since(start).Seconds()}
	r.lose(j, newly(before, j.losses()), s.Name)
	did := false // on any rank
	for rank, theirs := range all {
		if theirs != nil {
			r.take(j.members[rank], s.Name, theirs, &report)
			did = did || theirs.Skip == ""
		}
	}
	if did {
		report.Skipped = ""
	}
	r.Stages = append(r.Stages, report)
	if s.Judge != nil {
		for _, f := range s.Judge(r, j.cfg) {
			f.Stage = s.Name
			r.Findings = append(r.Findings, f)
			j.spoilt = cmp.Or(j.spoilt, spoils[f.Code])
		}
	}
	return nil
}

// spoils are findings, by code, of networks over which no collective can do well, whoever takes part.
var spoils = map[string]string{
	"black-hole":        "large packets vanish between hosts, as the findings say: check again when that is mended",
	"duplicate-address": "two hosts have one address, as the findings say: check again when that is mended",
}

// measure calls Measure, and leaves it behind if it does not end.
func (j *job) measure(ctx context.Context, s *stage, limit time.Duration) share {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan share, 1)
	go func() {
		var mine share
		list, err := s.Measure(ctx, j)
		mine.Measurements = list
		for i := range list {
			if x := &list[i]; math.IsNaN(x.Value) || math.IsInf(x.Value, 0) { // JSON has no such numbers
				x.Value, x.Text = 0, strings.TrimSpace(fmt.Sprint(x.Value, " ", x.Text))
			}
		}
		if why, ok := skipped(err); ok {
			mine.Skip = why
		} else if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			mine.Error = fmt.Sprintf("it was not done within %v: is the host busy, or much slower than the others?",
				limit.Round(time.Millisecond))
		} else if err != nil {
			mine.Error = err.Error()
		}
		done <- mine
	}()
	var mine share
	select {
	case mine = <-done:
	case <-time.After(limit + grace):
		if mine.Stuck = len(j.turn) == 0; !mine.Stuck { // it waits for what the first rank says
			mine.Error = "what the first rank had to say did not come in time: look at the way between them"
		}
	}
	mine.Took = time.Since(start)
	return mine
}

// take puts a rank's share of a stage into the report.
func (r *report) take(m member, stage string, s *share, report *stageReport) {
	for _, x := range s.Measurements {
		x.Stage, x.Rank = stage, m.Rank
		r.Measurements = append(r.Measurements, x)
	}
	who := of(m.Host, fmt.Sprint("rank ", m.Rank))
	switch {
	case s.Stuck:
		r.Findings = append(r.Findings, finding{Severity: broken, Code: "stuck", Stage: stage, Subject: who,
			Text: fmt.Sprintf("stage %s does not end after %.0f s: a driver or a system call hangs; look into its kernel log, "+
				"and restart the host", stage, s.Took.Seconds())})
	case s.Error != "":
		r.Findings = append(r.Findings, finding{Severity: unjudged, Code: "not-measured", Stage: stage, Subject: who,
			Text: fmt.Sprintf("stage %s could not be measured: %s", stage, s.Error)})
	case s.Skip != "" && report.Skipped == "":
		report.Skipped = s.Skip
	}
}

// lose puts lost ranks into the report.
func (r *report) lose(j *job, lost []loss, stage string) {
	r.loseAbsent(lost, stage)
	r.loseCut(j, lost, stage)
	for _, l := range lost {
		if l.Absent || l.Cut {
			continue
		}
		host, stage := j.members[l.Rank].Host, cmp.Or(l.Stage, stage)
		f := finding{Severity: broken, Code: "died", Stage: stage, Subject: of(host, fmt.Sprint("rank ", l.Rank)),
			Weight: 1000}
		switch {
		case l.Late:
			f.Severity, f.Code, f.Text = unjudged, "late-report", fmt.Sprintf("stage %s: %s: does the way to the first host "+
				"lose packets, or is the host busy?", stage, l.Why)
		case l.Stopped:
			f.Code, f.Text = "stopped",
				fmt.Sprintf("stopped in stage %s: %s: look whether it is stopped or hangs", stage, l.Why)
		default:
			f.Text = fmt.Sprintf("died in stage %s: %s; look into its output and the host's kernel log", stage, l.Why)
		}
		r.Findings = append(r.Findings, f)
		r.lostOf(host, l.Rank)
	}
}

// lostOf notes that a host has lost a rank.
func (r *report) lostOf(host string, rank int) {
	if i := slices.IndexFunc(r.Hosts, func(h hostReport) bool { return h.Name == host }); i >= 0 {
		r.Hosts[i].Lost = append(r.Hosts[i].Lost, rank)
	}
}

// loseCut puts hosts into the report that do not answer rank 0's. If none does, rank 0's own may be cut off.
func (r *report) loseCut(j *job, lost []loss, stage string) {
	var hosts []string
	why := map[string]string{}
	for _, l := range lost {
		if !l.Cut {
			continue
		}
		host := j.members[l.Rank].Host
		r.lostOf(host, l.Rank)
		stage = cmp.Or(l.Stage, stage)
		if why[host] == "" {
			hosts, why[host] = append(hosts, host), l.Why
		}
	}
	add := func(s subject, format string, a ...any) {
		r.Findings = append(r.Findings, finding{Severity: broken, Code: "cut-off", Stage: stage, Subject: s, Weight: 1000,
			Text: fmt.Sprintf("cut off in stage %s: %s", stage, fmt.Sprintf(format, a...))})
	}
	first := j.members[j.first].Host
	others := slices.ContainsFunc(j.Hosts(), func(h []int) bool { return j.members[h[0]].Host != first })
	switch {
	case others:
		for _, h := range hosts {
			add(of(h, ""), "%s, and other hosts do well: look at its cable, switch port and address, at firewalls, and at its "+
				"process", why[h])
		}
	case len(hosts) == 1:
		add(pairOf(component{Host: first}, component{Host: hosts[0]}), "of the second the first can say: %s; no third host "+
			"can tell which of them is cut off: look at cable, switch port and firewall of both", why[hosts[0]])
	case len(hosts) > 1:
		add(subject{}, "of none of %s can host %s, which leads, hear anything: it is cut off itself, or the network between "+
			"all is down: look at its cable, switch port and firewall first (of the first: %s)", namesOf(hosts), first,
			why[hosts[0]])
	}
}

// loseAbsent puts ranks that never came into the report, with one finding for each host.
func (r *report) loseAbsent(lost []loss, stage string) {
	type cause struct{ host, why string }
	ranks, order := map[cause][]string{}, []cause(nil)
	for _, l := range lost {
		if c := (cause{l.Host, l.Why}); l.Absent {
			if ranks[c] == nil {
				order = append(order, c)
			}
			ranks[c] = append(ranks[c], fmt.Sprint(l.Rank))
		}
	}
	for _, c := range order {
		who := "rank " + ranks[c][0]
		if len(ranks[c]) > 1 {
			who = "ranks " + strings.Join(ranks[c], ", ")
		}
		r.Findings = append(r.Findings, finding{Severity: broken, Code: "absent", Stage: stage, Subject: of(c.host, who),
			Weight: 1000 + float64(len(ranks[c])), Text: c.why})
	}
}

// newly are the losses that are not in before.
func newly(before, after []loss) []loss {
	return slices.DeleteFunc(slices.Clone(after), func(l loss) bool {
		return slices.ContainsFunc(before, func(b loss) bool { return b.Rank == l.Rank })
	})
}
