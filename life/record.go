package life

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/history"
)

// Record is this rank's last calls, where it is, and why the communicator has failed. It may be
// called at any time, and does not wait.
func (l *Life) Record() history.Record {
	sum := sha256.Sum256(append([]byte("ringo history "), l.group.Key()...)) // the key itself is secret
	r := history.Record{
		Comm: hex.EncodeToString(sum[:4]), Rank: l.Rank, Size: l.Size, Host: l.Host, Pid: os.Getpid(), Time: time.Now(),
		State: history.State{Rank: l.Rank, Heard: true, Peer: -1}, Waited: l.Guard.Waited(),
	}
	if v := l.verdict.Load(); v != nil && v.Err != call.ErrClosed {
		r.Cause, r.Culprits = v.Err.Error(), v.Culprits
	}
	number, pairwise := l.Turn.inside()
	l.Turn.numbers.Lock()
	calls := l.Turn.calls.Calls()
	r.Total, r.State.Last = l.Turn.calls.Len(), uint64(l.Turn.seq)
	l.Turn.numbers.Unlock()
	for _, e := range calls {
		s := call.ReadSign(e.Stamp)
		c := history.Call{Number: uint64(s.Seq), What: s.String()}
		if e.Peer >= 0 {
			verb, way := "Send", "to"
			if e.Recv {
				verb, way = "Recv", "from"
			}
			c.What = fmt.Sprintf("%s(count %d, %v) %s rank %d", verb, s.Count, s.Type, way, e.Peer)
		}
		if e.Time != 0 {
			c.Time = time.Unix(0, e.Time)
		}
		r.Calls = append(r.Calls, c)
	}
	l.mu.Lock()
	stop := l.stop
	l.mu.Unlock()
	switch {
	case stop != nil:
		r.State.At, r.State.Peer, r.State.Sending, r.State.Round, r.State.Step = stop.At, stop.Peer, stop.Sending, stop.Round, stop.Step
		r.Waited = stop.Waited
	case pairwise && len(calls) > 0 && calls[len(calls)-1].Peer >= 0:
		e := calls[len(calls)-1]
		r.State.Peer, r.State.Sending = int(e.Peer), !e.Recv
	default:
		r.State.At = number
	}
	return r
}
