package ras

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// look is how often a process that has a client in monitor mode asks the others. Tests shorten it.
var look = time.Second

// events are the groups of events in a client's list; bad is a word that names no group.
func events(list string) (lifecycle, trace bool, bad string) {
	list = strings.TrimSpace(list)
	if list == "" {
		return true, false, ""
	}
	for word := range strings.SplitSeq(list, ",") {
		switch strings.ToLower(word) {
		case "lifecycle":
			lifecycle = true
		case "trace":
			trace = true
		case "all":
			lifecycle, trace = true, true
		default:
			return false, false, word
		}
	}
	return lifecycle, trace, ""
}

// monitor tells a client of processes that come, die, stop answering and answer again, until it hangs up or this
// process is done.
func (c *client) monitor(lifecycle, trace bool) {
	c.SetDeadline(time.Now().Add(clientTime))
	was := map[string]heard{}
	for _, p := range c.s.survey(c.wait).Processes {
		was[p.Card.process()] = p.Heard
	}
	if _, err := io.WriteString(c, "OK\n"); err != nil {
		return
	}
	gone := make(chan struct{})
	c.SetReadDeadline(time.Time{})
	c.s.work.Go(func() { // ignores further input, and notices when the client hangs up
		defer close(gone)
		_, _ = io.Copy(io.Discard, c)
	})
	defer func() {
		c.Close()
		<-gone
	}()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-c.s.began.Done():
			return
		case <-tick.C:
		}
		x := c.s.survey(c.wait)
		for i := range x.Processes {
			p := &x.Processes[i]
			name := p.Card.process()
			before, known := was[name]
			was[name] = p.Heard
			text := ""
			switch group, event := change(before, p.Heard, known); {
			case event == "", group == "LIFECYCLE" && !lifecycle, group == "TRACE" && !trace:
				continue
			case c.asJSON:
				text = p.eventJSON(group, event)
			default:
				text = fmt.Sprintf("[%s] %s: %s \n", time.Now().Format(timeLayout), event, p)
			}
			c.SetWriteDeadline(time.Now().Add(clientTime))
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// change is the event for a process that answered as before and answers as now, "" if there is none.
func change(before, now heard, known bool) (group, event string) {
	switch {
	case !known && now != dead:
		return "LIFECYCLE", "PEER_NEW"
	case now == before:
	case now == dead:
		return "LIFECYCLE", "PEER_DEAD"
	case now == silent:
		return "TRACE", "PEER_UNRESPONSIVE"
	case now == left:
		return "TRACE", "PEER_DISCONNECTED"
	case before == silent:
		return "TRACE", "PEER_RECOVERED"
	}
	return "", ""
}

// eventJSON is an event as NCCL's RAS writes it.
func (p *Process) eventJSON(group, event string) string {
	var j struct {
		Time  string `json:"timestamp"`
		Group string `json:"group"`
		Event string `json:"event"`
		Peer  struct {
			Host    string `json:"host"`
			Pid     int    `json:"pid"`
			Devices []int  `json:"cuda_devs"`
			NVML    []int  `json:"nvml_devs"`
		} `json:"peer"`
		Details string `json:"details"`
	}
	j.Time, j.Group, j.Event = time.Now().Format(timeLayout), group, event
	j.Peer.Host, j.Peer.Pid, j.Peer.Devices, j.Peer.NVML = p.Card.Host, p.Card.Pid, p.Devices, p.Devices
	b, err := json.MarshalIndent(&j, "", "  ")
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}
