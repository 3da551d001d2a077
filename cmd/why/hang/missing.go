package hang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/trace/history"
)

// lost are the members of a place of which no file tells where they are, or all ranks without a file if the place has
// none.
func (jd *judge) lost(at place) []int {
	if m := jd.sort(at); len(m.unknown) > 0 {
		return m.unknown
	}
	return jd.lostAnywhere()
}

// lostAnywhere are the ranks of which no file tells where they are, in any group.
func (jd *judge) lostAnywhere() (ranks []int) {
	for r := range jd.Ranks {
		if k := &jd.Ranks[r]; !jd.old[r] && (k.Source == "" || len(jd.waits[r]) == 0 && len(k.Blind)+len(k.Hidden) > 0) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// left says what a rank has left whose calls are not known.
func (jd *judge) left(r int) string {
	switch rank := &jd.Ranks[r]; {
	case jd.old[r]:
		return "left a file of another time"
	case len(rank.Torns) > 0, rank.Torn:
		return "left a file that cannot be read"
	case len(rank.Hidden) > 0 && rank.Source != "":
		return "waits in communicator " + strings.Join(rank.Hidden, ", ")
	case jd.Own && rank.Source != "" && len(rank.Absent) == 0:
		return "left a file of another time"
	case jd.Own:
		return "left no file"
	}
	return "left nothing"
}

// missing says what is wrong with the files of ranks: "the file of rank 1 is missing, and that of rank 2 cannot be
// read".
func (jd *judge) missing(ranks []int) string {
	var parts []string
	for _, kind := range []struct{ left, one, many string }{
		{"left a file that cannot be read", "the file of %s cannot be read", "the files of %s cannot be read"},
		{"left a file of another time", "the file of %s is of another time", "the files of %s are of another time"},
		{"", "the file of %s is missing", "the files of %s are missing"},
	} {
		var of []int
		for _, r := range ranks {
			if left := jd.left(r); left == kind.left || kind.left == "" && !strings.HasPrefix(left, "left a file") {
				of = append(of, r)
			}
		}
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf(verb(of, kind.one, kind.many), history.Ranks(of)+jd.hosts(of)))
		}
	}
	return strings.Join(parts, ", and ")
}

// hosts names the hosts of ranks in brackets, "" if they are not known or too many.
func (jd *judge) hosts(ranks []int) string {
	var names []string
	for _, r := range ranks {
		if h := jd.Ranks[r].Host; h != "" && !slices.Contains(names, h) {
			names = append(names, h)
		}
	}
	const most = 4
	switch n := len(names); {
	case n == 0 || n > most:
		return ""
	case n == 1:
		return " (host " + names[0] + ")"
	}
	return " (hosts " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + ")"
}

// fetch is the remedy for missing files: which to fetch, and what it may mean that there is none.
func (jd *judge) fetch(ranks []int) string {
	if slices.ContainsFunc(ranks, func(r int) bool { return jd.old[r] }) {
		return "take the files of all ranks at one moment, after the time-out"
	}
	if !jd.Own {
		return "give the files of all ranks: each process writes its own, on its host; one that has written none has " +
			"ended, is stopped or cut off"
	}
	const most = 3
	var names, hidden []string
	for _, r := range ranks {
		hidden = append(hidden, jd.Ranks[r].Hidden...)
	}
	for _, r := range ranks {
		k := &jd.Ranks[r]
		files := slices.DeleteFunc(slices.Concat(k.Torns, k.Absent), func(f string) bool { // those of all ranks are named
			return slices.ContainsFunc(hidden, func(id string) bool { return strings.HasPrefix(f, "ringo-"+id+"-rank") })
		})
		for _, id := range k.Hidden {
			files = append(files, fmt.Sprintf("ringo-%s-rank*.json", id))
		}
		for _, f := range files {
			if k.Host != "" {
				f += " of host " + k.Host
			}
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	if n := len(names); n > most {
		names = append(names[:most], fmt.Sprintf("%d more", n-most))
	}
	text := "fetch the files of all ranks"
	if len(names) > 0 {
		text = "fetch " + strings.Join(names, ", ")
	}
	if r := &jd.Ranks[ranks[0]]; r.Pid > 0 {
		return fmt.Sprintf("%s; if there is none, look whether process %d lives there", text, r.Pid)
	}
	return text + "; a rank that has written none has ended, is stopped or cut off"
}

// sayMoved writes the sentence about a call whose data still moved when time ran out.
func (jd *judge) sayMoved(a *Answer, c *cause) {
	a.Sentence = fmt.Sprintf("the time-out is too short, or the network has failed just now: data still moved between %s "+
		"%v before; %s", history.Ranks(c.between), history.Spell(c.late), jd.waiting(c.at))
	a.Remedy = "give the ranks a longer Timeout (RINGO_TIMEOUT)"
}

// sayVerdict writes the sentence about a group that has failed: what its ranks found, and what other files know of
// those to blame.
func (jd *judge) sayVerdict(a *Answer, c *cause) {
	v := c.verdict
	a.Sentence = v.Sentence
	var known []int
	for _, r := range c.culprits {
		if jd.Ranks[r].end() != "" {
			known = append(known, r)
		}
	}
	switch {
	case v.Lost:
		a.Sentence = "I cannot say: " + v.Sentence
		id, _, _ := strings.Cut(jd.Groups[v.Group].Name, " (")
		a.Remedy = fmt.Sprintf("fetch the files of that communicator: ringo-%s-rank*.json", id)
	case len(v.rivals) > 0:
		a.Sentence = "I cannot say which failure was first: " + v.Sentence
		for _, r := range v.rivals {
			a.Sentence += "; or " + r.Sentence
		}
		a.Remedy = "fetch the files of all ranks, or look whose log has an error first"
		if lost := jd.lostAnywhere(); len(lost) > 0 {
			a.Remedy = jd.fetch(lost)
		}
	case c.Reason == Unknown && len(v.Outlived) > 0:
		a.Sentence = fmt.Sprintf("I cannot say, for a file of %s was written just before, as when another communicator has "+
			"failed: %s", history.Ranks(v.Outlived), v.Sentence)
		a.Remedy = "fetch the files of all communicators, and look at the end of the log of " + jd.who(v.Outlived)
	case len(c.unproven) > 0:
		a.Sentence = fmt.Sprintf("I cannot say, for %s may have waited in another communicator: %s",
			history.Ranks(c.unproven), v.Sentence)
		a.Remedy = jd.fetch(c.unproven)
	case c.Reason == Unknown && len(v.Culprits) > 0:
		a.Sentence = fmt.Sprintf("I cannot say: ranks waited in communicator %s too, of which there are no files, and what "+
			"failed first is not known; %s", strings.Join(jd.Lost, ", "), v.Sentence)
		a.Remedy = "fetch the files of that communicator too: ringo-" + jd.Lost[0] + "-rank*.json"
	case len(v.Culprits) > len(c.culprits) && len(c.culprits) > 0:
		a.Sentence += fmt.Sprintf("; of these only %s can have waited nowhere else", history.Ranks(c.culprits))
		a.Remedy = jd.inspect(c.culprits)
	case len(known) > 0:
		a.Sentence = fmt.Sprintf("%s %s; %s", jd.who(known), jd.death(known), v.Sentence)
		a.Remedy = jd.readLog(known, history.Ranks(known))
	case len(c.culprits) == 0 && c.Reason == Unknown:
		a.Remedy = "look at the processes of these ranks, and run ringo check on their hosts"
	case c.Reason == Short:
		a.Remedy = "give the ranks a longer Timeout (RINGO_TIMEOUT)"
	case v.Silent && len(c.culprits) > 0:
		a.Remedy = fmt.Sprintf("look whether %s lives, and is not stopped (kill -CONT)", jd.who(c.culprits))
	case v.TimedOut && len(c.culprits) > 0:
		a.Remedy = jd.inspect(c.culprits)
	case len(c.culprits) > 0:
		a.Remedy = "look at the end of the log of " + jd.who(c.culprits)
	}
}
