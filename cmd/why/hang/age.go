package hang

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ringo-go/ringo/trace/history"
)

// Patience is how long ranks have to have waited for one of them to be accused, where Job.Patience is 0.
const Patience = 3 * time.Second

// OwnPatience is the same of histories. A rank whose call has waited for a second asks where the others are.
const OwnPatience = time.Second

// A Witness is what tells when a rank was seen.
type Witness uint8

const (
	FileTime Witness = iota // the time of the file, which a copy may have changed
	Content                 // the file itself
	LastLine                // the newest line of a log: the rank may have come further since
)

// dated reports whether a time is one, and not the number of a log's line.
func dated(t time.Time) bool { return t.Unix() > 0 }

// newest is the newest time in a rank's calls, by its host's clock.
func (k *Rank) newest() (t time.Time) {
	for i := range k.Calls {
		for _, x := range []time.Time{k.Calls[i].At, k.Calls[i].Ends} {
			if dated(x) && x.After(t) {
				t = x
			}
		}
	}
	return t
}

// An age is how long the ranks at a place had waited when they were seen.
type age struct {
	known         bool          // files have times at all
	least, atMost time.Duration // atMost is endless if nothing shows it
	file          bool          // atMost is by times of files
	lost          bool          // times of files cannot be right
}

const endless = time.Duration(1 << 62)

// age finds how long the rank that has waited longest at a place has done so.
func (jd *judge) age(at place) (a age) {
	for _, r := range jd.open(at) {
		k, since := &jd.Ranks[r], jd.in(at, r).At
		if !dated(since) {
			return age{}
		}
		newest := k.newest()
		a.least = max(a.least, newest.Sub(since))
		if k.Taken.IsZero() {
			continue
		}
		a.known = true
		seen := k.Taken.Sub(since)
		switch {
		case k.By == FileTime && k.Taken.Before(newest.Add(-time.Second)):
			a.lost, a.atMost = true, endless
		case k.By == FileTime:
			a.file, a.atMost = true, max(a.atMost, seen)
		case k.By == LastLine:
			a.least, a.atMost = max(a.least, seen), endless
		default:
			a.least, a.atMost = max(a.least, seen), max(a.atMost, seen)
		}
	}
	if a.known && at.number >= 0 {
		p := jd.pace(at.group)
		late, _ := p.spread(at.number)
		if p.common < few {
			late -= clocks
		}
		if len(p.at[at.number]) > 1 {
			a.least = max(a.least, late)
		}
	}
	a.atMost = max(a.atMost, a.least)
	return a
}

// patience is how long ranks have to have waited.
func (j *Job) patience() time.Duration {
	switch {
	case j.Patience == 0 && j.Own:
		return OwnPatience
	case j.Patience == 0:
		return Patience
	}
	return j.Patience
}

// A doubt is a cause that holds only if ranks have waited for long.
type doubt struct {
	cause
	age
	usual time.Duration // how long the ranks have waited for each other before, if that is as long
}

// settle takes a cause back unless ranks have waited long enough, at the place where the search began and at that of
// the cause. Nothing is left of it if they surely have not; what may hold all the same is Unknown.
func (jd *judge) settle(from place, found cause) cause {
	switch found.Reason {
	case Nothing, Died, Slow, Short:
		return found
	case Different, Shapes, Roots:
		if jd.Own { // signs that differ never meet, however short the wait was
			return found
		}
	}
	bound, places := jd.patience(), []place{from, found.at}
	if found.Reason == Order { // a circle is as old as its youngest part
		for _, s := range found.sides {
			places = append(places, jd.earliest(s.ranks[0], s.call))
		}
	}
	for _, at := range slices.Compact(places) {
		a := jd.age(at)
		d := &doubt{cause: found, age: a}
		switch usual := jd.usual(at); {
		case !a.known, a.least >= bound && a.least > usual, bound < 0:
		case a.atMost < bound && at == from && len(found.sides) == 0 && len(jd.old)+len(jd.lostAnywhere()) == 0:
			return cause{Reason: Nothing, at: at, doubt: d}
		case found.Reason == Unknown:
			return found
		case a.atMost < bound, a.atMost == endless:
			return cause{Reason: Unknown, at: at, doubt: d}
		case a.atMost <= usual:
			d.usual = usual
			return cause{Reason: Unknown, at: at, doubt: d}
		}
	}
	return found
}

// sayDoubt writes the sentence about ranks that may not have waited for long.
func (jd *judge) sayDoubt(a *Answer, c *cause) {
	d := c.doubt
	if c.Reason == Nothing {
		a.Sentence = "no rank waits for long: " + jd.waiting(c.at)
		if jd.since(c.at, jd.open(c.at)) == "" {
			a.Sentence += fmt.Sprintf(" since %v", history.Spell(d.atMost))
		}
		a.Remedy = fmt.Sprintf("if the job stands still, ask for the files again in %v, or give -for 0s", jd.patience())
		var lost []int
		for r := range jd.Ranks {
			if len(jd.Ranks[r].Absent)+len(jd.Ranks[r].Torns) > 0 {
				lost = append(lost, r)
			}
		}
		if len(lost) > 0 {
			a.Reason, a.Remedy = Unknown, jd.fetch(lost)
			a.Sentence = fmt.Sprintf("I cannot say, because not all files of %s are here; what is here says: %s",
				history.Ranks(lost), a.Sentence)
		}
		return
	}
	var of Answer
	jd.say(&of, &d.cause)
	why := fmt.Sprintf("ranks have waited only %v", history.Spell(d.atMost))
	a.Remedy = fmt.Sprintf("ask for the files of all ranks again in %v", jd.patience())
	switch {
	case d.usual > 0:
		why += fmt.Sprintf(", and %v for each other before", history.Spell(d.usual))
	case d.lost:
		why = "files have other times than their contents, so nothing shows how long ranks have waited"
		a.Remedy = "copy the files with their times: cp -p, scp -p, rsync -t, tar"
	case d.atMost == endless:
		why = fmt.Sprintf("the log shows a wait of %v only", history.Spell(d.least))
		a.Remedy = fmt.Sprintf("give the log again in %v, or dumps, or an answer of RAS", jd.patience())
	}
	a.Sentence = fmt.Sprintf("I cannot say, as %s: %s", why, of.Sentence)
}

// filed is a note that the answer stands on times of files, "" if it does not. A wait of about the time-out, or of what
// PyTorch has for it, is one that the watchdog has ended.
func (jd *judge) filed(c *cause) string {
	a, limit := jd.age(c.at), cmp.Or(jd.limit(c.at), 10*time.Minute)
	if c.doubt != nil || !a.known || !a.file || a.least >= jd.patience() || a.atMost >= limit && a.atMost <= 2*limit {
		return ""
	}
	return fmt.Sprintf("ranks have waited %v by the times of their files: a copy without times says too much",
		history.Spell(a.atMost))
}
