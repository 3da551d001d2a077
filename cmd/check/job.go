package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
)

// A member describes a rank to all ranks.
type member struct {
	Rank int
	Host string // the name of its host in the report, another one for each host
	ID   string // identifies the host: different for different hosts
	Boot string // of the kernel: the same for hosts that are one machine
	// Version is that of ringo.
	Version string
	// Addresses are those of its host, and MACs those of the host's cards.
	Addresses []address
	MACs      []string
}

// A loss is a rank that is no longer in the job, and why.
type loss struct {
	Rank    int
	Stopped bool   // its process may live, but does not answer; else it has ended
	Late    bool   // it lives, and its report has not come in time
	Cut     bool   // its host does not answer rank 0's
	Absent  bool   // it never came
	Host    string // host of an absent rank, if known
	Stage   string // the stage in which it was lost; Gather fills it in
	Why     string
}

// A job is one rank's part of a check: who the others are, and how to talk to them.
type job struct {
	*party
	at      int // the stage that it was made for, 0 for none
	gathers int // that were made in it
}

// A party is the state that a rank's jobs of all stages share.
type party struct {
	rank int
	// the lowest rank that has come: it gathers, judges and has the report
	first int
	// keeps the rendezvous open, to refuse ranks that come late; nil if all came
	group   bootstrap.Group
	members []member       // by rank
	key     []byte         // secret of the job
	tls     *bootstrap.TLS // of connections to rank 0
	// for tests; nil is dialSegments
	dial    func(ctx context.Context, from, to string, segment int) (net.Conn, error)
	listens func(ip net.IP) (net.Listener, error) // the same
	// carries out the collectives of a group of ranks, in tests; nil is by communicators
	collects func(ctx context.Context, group []int, step int) error
	// the IP address at which this rank has met the first, which serves the rendezvous of communicators
	meetAt  string
	machine *machine
	cfg     *config // of the run under way
	gpus    gpuSet  // of its host, if this rank is the one that looks at them
	// what this rank has seen of others' cards
	neighbours *neighbours
	spoilt     string // why collectives would fail, as the first rank has found out; else empty

	turn chan struct{} // holds one value while a gather is under way: gathers share one connection
	star star

	mu    sync.Mutex
	lost  map[int]loss
	began time.Time     // when this rank began to join; zero once a run has counted it
	under int           // the stage under way, from 1
	name  string        // its name
	left  time.Duration // time left for further stages, as rank 0 has sent it: the same on all ranks
}

func newJob(rank int, members []member, key []byte) *job {
	return &job{party: &party{rank: rank, members: members, key: key, meetAt: "127.0.0.1", machine: thisMachine("/"),
		neighbours: &neighbours{seen: map[string]map[string]bool{}}, turn: make(chan struct{}, 1), lost: map[int]loss{}}}
}

// First reports whether this rank is the lowest that has come: it gathers, judges and has the report.
func (j *job) First() bool { return j.rank == j.first }

// component is a rank, as the report names it.
func (j *job) component(rank int) component {
	return component{j.members[rank].Host, fmt.Sprint("rank ", rank)}
}

// Rank is this rank's number. Size is the number of ranks at the beginning, lost ones included.
func (j *job) Rank() int { return j.rank }
func (j *job) Size() int { return len(j.members) }

// Member is the description of a rank.
func (j *job) Member(rank int) member { return j.members[rank] }

// Host is the name of this rank's host in the report.
func (j *job) Host() string { return j.members[j.rank].Host }

// SetMachine has this rank look at another machine than thisMachine("/").
func (j *job) SetMachine(m *machine) { j.machine = m }

// Config is the config of the run under way.
func (j *job) Config() *config { return j.cfg }

// Lost reports whether a rank is known to be lost: the same on all ranks between two gathers.
func (j *job) Lost(rank int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, lost := j.lost[rank]
	return lost
}

// Live are the ranks that are not lost, ascending.
func (j *job) Live() []int {
	var live []int
	for r := range j.members {
		if !j.Lost(r) {
			live = append(live, r)
		}
	}
	return live
}

// Hosts are the live ranks of each host, hosts in the order of their first ranks.
func (j *job) Hosts() [][]int {
	var hosts [][]int
	at := map[string]int{}
	for _, r := range j.Live() {
		h := j.members[r].Host
		if _, ok := at[h]; !ok {
			at[h] = len(hosts)
			hosts = append(hosts, nil)
		}
		hosts[at[h]] = append(hosts[at[h]], r)
	}
	return hosts
}

// Local are the live ranks of this rank's host, ascending.
func (j *job) Local() []int {
	return slices.DeleteFunc(j.Live(), func(r int) bool { return j.members[r].Host != j.Host() })
}

// shared reports whether two hosts of the job are one machine.
func (j *job) shared() bool {
	owner := map[string]string{}
	for _, r := range j.Live() {
		m := j.members[r]
		if host, ok := owner[m.Boot]; ok && m.Boot != "" && host != m.Host {
			return true
		}
		owner[m.Boot] = m.Host
	}
	return false
}

// Leader reports whether this rank is the first live one of its host. Leaders do the work that is
// needed once a host.
func (j *job) Leader() bool { return j.Local()[0] == j.rank }

// Gather returns every rank's data by rank, nil for ranks that are lost, have ended the stage, or have not come when
// rank 0's ctx ended. All live ranks call it in the same order, so it is a barrier too. A rank that has not come to the
// end of the stage a little after its limit is lost. It is an error if rank 0 is gone or has ended the stage, or if
// this rank was taken for lost. Cost: a round trip to rank 0, which sends all data to all ranks.
func (j *job) Gather(ctx context.Context, data []byte) ([][]byte, error) {
	j.gathers += 2
	return j.gather(ctx, data, j.gathers)
}

// Collect is a Gather of which only rank 0 gets the data; the others get nil.
func (j *job) Collect(ctx context.Context, data []byte) ([][]byte, error) {
	j.gathers += 2
	return j.gather(ctx, data, j.gathers+1)
}

// conclude is the Collect at the end of the stage.
func (j *job) conclude(ctx context.Context, data []byte) ([][]byte, error) {
	return j.gather(ctx, data, lastGather+1)
}

// parts gathers a value of every rank by one of these: nil for those that give none. If one says nothing sensible,
// there is an error beside the others' values.
func parts[T any](ctx context.Context, gather func(context.Context, []byte) ([][]byte, error), mine T) ([]*T, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := gather(ctx, text)
	if err != nil {
		return nil, err
	}
	list := make([]*T, len(all))
	for r, part := range all {
		if part == nil {
			continue
		}
		v := new(T)
		if failed := json.Unmarshal(part, v); failed != nil {
			err = fmt.Errorf("rank %d says nothing sensible: %w", r, failed)
			continue
		}
		list[r] = v
	}
	return list, err
}

// told is the first rank's value.
func told[T any](ctx context.Context, j *job, mine T) (T, error) {
	all, err := parts(ctx, j.Gather, mine)
	if all == nil || all[j.first] == nil {
		return mine, err
	}
	return *all[j.first], nil
}

func (j *job) gather(ctx context.Context, data []byte, number int) ([][]byte, error) {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	j.mu.Lock()
	current := j.at == j.under
	j.mu.Unlock()
	if !current {
		return nil, errors.New("check: this stage has ended")
	}
	a, err := j.star.gather(ctx, gatherNumber(j.at, number), append([]byte{}, data...))
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range a.Lost {
		l.Stage = j.name
		j.lost[l.Rank] = l
	}
	if isLast(a.Seq) {
		j.left = a.Left
	}
	return a.Parts, err
}

// The number of a gather has the stage in the high bits, and the gather's number within the stage in the low ones, so
// that ranks which made different numbers of gathers meet again at the stage's end. It is odd for Collect.
const lastGather = 1 << 20

func gatherNumber(stage, number int) int { return stage<<21 | number }
func isLast(seq int) bool                { return seq&lastGather != 0 }
func isQuiet(seq int) bool               { return seq&1 != 0 }
func stageOf(seq int) int                { return seq >> 21 }

// enter begins a stage.
func (j *job) enter(name string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.under++
	j.name = name
	return &job{party: j.party, at: j.under}
}

// leastLeft is the time that stages have at least, however long ranks took to join.
const leastLeft = 10 * time.Second

// begin starts the time of all stages, without end if within is 0, and returns its start: for the first run that of
// joining. Rank 0's clock counts.
func (j *job) begin(within time.Duration) (started time.Time) {
	now := time.Now()
	started, j.began = j.began, time.Time{}
	if started.IsZero() {
		started = now
	}
	left, end := forever, time.Time{}
	if within > 0 {
		left = max(within-now.Sub(started), min(within, leastLeft))
		end = now.Add(left)
	}
	if h, ok := j.star.(*hub); ok {
		h.end = end
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = left
	return started
}

// remaining is the time left for further stages.
func (j *job) remaining() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left
}

// losses are the lost ranks, in order.
func (j *job) losses() []loss {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []loss
	for _, l := range j.lost {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b loss) int { return a.Rank - b.Rank })
	return list
}

// Close ends this rank's part. All ranks call it after run, or the others take this one for dead.
func (j *job) Close() error {
	j.gpus.close()
	err := j.star.close()
	if j.group != nil {
		err = errors.Join(err, j.group.Close())
	}
	return err
}
