package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/ringo-go/ringo/sched"
)

// ErrDeadlock is wrapped by the error of a schedule in which ranks wait for
// each other for ever at the depth of the model's queues.
var ErrDeadlock = errors.New("deadlock")

// ErrSteps is the error of a Run of more than Options.MaxSteps steps.
var ErrSteps = errors.New("sim: more than MaxSteps steps")

// A Result is the time of a collective and the bytes it moves. All times are in
// seconds from a common start.
type Result struct {
	Time  float64   // when the last rank is done
	Ranks []float64 // when each is
	Ends  []float64 // when the last rank is done with each round that was carried out

	Rounds     int // all there are, more than len(Ends) where Options.MaxRounds is less
	Messages   int64
	SelfBytes  int64 // sent by ranks to themselves
	IntraBytes int64 // sent to ranks of the same node
	InterBytes int64 // sent to other nodes
}

// Options are for runs that take long; the zero Options carry out all rounds.
type Options struct {
	// MaxRounds bounds the rounds that are carried out; 0 is all. The others are
	// taken to last as long each as the later half of these, see Estimate. Below 8
	// it counts as 8.
	MaxRounds int
	// MaxSteps, if not 0, has Run return ErrSteps in place of carrying out more steps. Of ranks that are alike those of
	// one count.
	MaxSteps int64
	// Progress, if not nil, is called about a hundred times a second, by the
	// goroutine that called Run, with the share of the steps that are done.
	Progress func(share float64)
	// Step, if not nil, is called for every step that is carried out, by the goroutine that
	// called Run. The steps of a rank come in their order. No rank stands for others then.
	Step func(Timed)
}

// A Timed is when a rank did a step in one of the rounds. It has waited for its message before
// anything else, and before sending for room at the peer.
type Timed struct {
	Rank        sched.Rank
	Round, Step int
	Start, End  float64
	Recv, Send  float64 // how long it waited for its message, and for room
}

// Run times schedule s under model m. bytes is the size of the larger of a
// rank's two buffers: what a rank gives to an all-reduce, what it gets from an
// all-gather. Each chunk of the schedule has an equal share, rounded up.
//
// It costs 30 to 200 ns a step and round, the most where ports are shared or very many pairs of ranks talk. From 512
// ranks on it first looks whether ranks are alike, at 50 to 100 ns a step, and then carries out the steps of one for
// all; of more than 16 million steps it looks at those of some ranks. It takes some 75 bytes for each rank and 50 for
// each such pair: choose Options.MaxRounds where that takes too long. It ends when ctx does. The error wraps ErrModel,
// ErrDeadlock or the cause of ctx, or names a step that cannot be.
func Run(ctx context.Context, s sched.Schedule, m Model, bytes int64, o Options) (Result, error) {
	rounds := math.MaxInt32
	if o.MaxRounds > 0 {
		rounds = max(o.MaxRounds, minRounds)
	}
	w, err := begin(s, m, bytes, func(int64) int { return rounds }, o.Step)
	if err != nil {
		return Result{}, err
	}
	defer w.release()
	all := float64(w.rounds) * float64(w.steps) / float64(w.sym.orbit())
	if o.MaxSteps > 0 && all > float64(o.MaxSteps) {
		return Result{}, ErrSteps
	}
	w.check = func(done int64) error {
		if ctx.Err() != nil {
			return fmt.Errorf("sim: %w", context.Cause(ctx))
		}
		if o.Progress != nil {
			o.Progress(float64(done) / all)
		}
		return nil
	}
	if err := w.run(); err != nil {
		return Result{}, err
	}
	return w.result(), nil
}

// result is that of a run which has come to its end.
func (w *world) result() Result {
	res := Result{
		Ranks:  make([]float64, len(w.ranks)),
		Ends:   append([]float64(nil), w.ends...),
		Rounds: len(w.ends) + int(math.Ceil(w.skipped)),
	}
	rest := w.rest()
	for r := range w.ranks {
		res.Ranks[r] = w.ranks[w.sym.rep(int32(r))].end() + rest
		res.Time = max(res.Time, res.Ranks[r])
	}
	var onWeak int64
	to := [kinds]*int64{&res.SelfBytes, &res.IntraBytes, &res.InterBytes, &onWeak}
	for i, p := range w.pieces {
		for k, n := range w.sent[i] {
			n *= int64(w.sym.orbit())
			res.Messages += n
			*to[k] += n * int64(p.bytes)
		}
	}
	res.InterBytes += onWeak
	// Rounds that were skipped move what the others do.
	done := len(w.ends)
	res.Messages += res.Messages / int64(done) * int64(res.Rounds-done)
	for _, bytes := range to[:weak] {
		*bytes += int64(math.Round(float64(*bytes) / float64(done) * w.skipped))
	}
	return res
}

// Estimate carries out at least minRounds rounds, enough to fill the queues of
// most schedules, half as many of more than manySteps steps each, and more of short
// schedules, up to maxRounds, while that is cheap: at most cheapSteps steps in all.
const (
	minRounds  = 8
	maxRounds  = 32
	manySteps  = 4_000
	cheapSteps = 4_000
)

// Estimate is the Time of Run, quickly, for code that chooses between schedules. Of
// many rounds it carries out 4 to 32 and takes the others to last as long each as
// the later half of these. That is exact once rounds follow each other evenly: for
// half of the schedules and presets of this library. For 90 of 100 it is within
// 2 %; the worst, long chains over memory that is shared, are a third off. It
// takes well under a millisecond for up to 64 ranks unless they have many rounds,
// has one node of four or more that are alike stand for all,
// and allocates nothing after a first call for a schedule as large.
func Estimate(s sched.Schedule, m Model, bytes int64) (float64, error) {
	return EstimateWithin(s, m, bytes, math.Inf(1))
}

// EstimateWithin is Estimate for code that looks for the quickest schedule: it ends early, with an infinite time, when
// a rank is later than limit, or when rounds that go on like the first ones will be by far.
func EstimateWithin(s sched.Schedule, m Model, bytes int64, limit float64) (float64, error) {
	w, err := begin(s, m, bytes, fewRounds, nil)
	if err != nil {
		return 0, err
	}
	defer w.release()
	w.limit = limit
	if w.sym == (symmetry{}) {
		w.sym = w.likelySymmetry()
	}
	if w.sym == (symmetry{}) {
		w.writeDown()
	}
	switch err := w.run(); {
	case err == errLate:
		return math.Inf(1), nil
	case err != nil:
		return 0, err
	}
	return w.ends[len(w.ends)-1] + w.rest(), nil
}

// errLate ends a run that takes longer than its limit.
var errLate = errors.New("later than the limit")

// late reports whether a rank that has ended a round will end all of them far behind the limit: from the fourth round
// on they take at least as long as this one's last two.
func (w *world) late(st *rank) bool {
	const first, byFar = 3, 1.3
	if st.round < first || math.IsInf(w.limit, 1) {
		return false
	}
	each := (st.end() - w.ends[st.round-3]) / 2
	return st.end()+float64(each*(float64(w.rounds-st.round)+w.skipped)) > byFar*w.limit
}

// fewRounds is how many rounds Estimate carries out.
func fewRounds(steps int64) int {
	least := int64(minRounds)
	if steps > manySteps {
		least = minRounds / 2
	}
	return int(min(max(least, cheapSteps/max(1, steps)), maxRounds))
}

// rest is how long the rounds take that were skipped: as long each as the later
// half of the others.
func (w *world) rest() float64 {
	if w.skipped == 0 {
		return 0
	}
	n := len(w.ends)
	return w.skipped * (w.ends[n-1] - w.ends[n/2-1]) / float64(n-n/2)
}

// worlds keeps the memory of small runs, of keepRanks at most, for later ones.
var worlds = sync.Pool{New: func() any { return new(world) }}

const keepRanks = 4096

func (w *world) release() {
	if len(w.ranks) <= keepRanks {
		w.s, w.check, w.see = nil, nil, nil
		worlds.Put(w)
	}
}

// begin sets up a run of all rounds, or of as many as most says where a round has
// that many steps. see is Options.Step.
func begin(s sched.Schedule, m Model, bytes int64, most func(steps int64) int, see func(Timed)) (*world, error) {
	shape := s.Shape()
	chunks := int64(max(shape.In, shape.Out))
	switch {
	case shape.Ranks < 1 || shape.Ranks > math.MaxInt32:
		return nil, fmt.Errorf("sim: a schedule of %d ranks", shape.Ranks)
	case chunks < 1:
		return nil, fmt.Errorf("sim: a schedule without chunks: %+v", shape)
	case bytes < 0:
		return nil, fmt.Errorf("sim: %d bytes", bytes)
	}
	m, err := m.complete(shape.Ranks)
	if err != nil {
		return nil, err
	}

	w := worlds.Get().(*world)
	w.s, w.m, w.wrong = s, m, nil
	w.queues.reset(shape.Ranks)
	w.ready = rankQueue{ranks: resize(w.ready.ranks, shape.Ranks)}
	w.requests, w.begins = w.requests[:0], w.begins[:0]
	w.ranks = resize(w.ranks, shape.Ranks)
	w.steps, w.done, w.check, w.see, w.limit = 0, 0, nil, see, math.Inf(1)
	for r := range w.ranks {
		n := s.Len(sched.Rank(r))
		w.ranks[r] = rank{steps: int32(n), sendTo: -1, recvFrom: -1, waits: ready}
		w.steps += int64(n)
	}
	if w.sym = (symmetry{}); see == nil {
		w.sym = w.symmetry()
	}
	w.cut((bytes+chunks-1)/chunks, int64(most(w.steps)))
	nodes := (shape.Ranks + m.NodeRanks - 1) / m.NodeRanks
	w.nodes = w.nodes[:0]
	if m.Nodes != nil {
		nodes = len(m.Nodes)
		for node, ranks := range m.Nodes {
			for range ranks {
				w.nodes = append(w.nodes, int32(node))
			}
		}
	}
	w.buses, w.cardsOut, w.cardsIn = w.buses[:0], w.cardsOut[:0], w.cardsIn[:0]
	if m.Intra.Shared > 0 {
		w.buses = resize(w.buses, nodes)
	}
	if m.Inter.Shared > 0 {
		w.cardsOut, w.cardsIn = resize(w.cardsOut, nodes), resize(w.cardsIn, nodes)
	}
	return w, nil
}

// cut divides a chunk into rounds as the engine does: pieces of half a queue
// and a remainder, most rounds at most.
func (w *world) cut(chunk, most int64) {
	full := int64(w.m.SlotBytes) * int64(w.m.Slots/2)
	rounds := max(1, (chunk+full-1)/full)
	rest := chunk - (rounds-1)*full
	w.skipped = 0
	if rounds > most {
		w.skipped = float64(chunk-most*full) / float64(full)
		rounds, rest = most, full
	}
	w.rounds = int32(rounds)
	w.pieces = [2]piece{w.m.newPiece(min(chunk, full)), w.m.newPiece(rest)}
	w.depth = uint32(w.m.Slots / int(w.pieces[0].slices))
	w.ends = resize(w.ends, int(rounds))
	w.sent = [2][kinds]int64{}
}

// resize is n zero values, in the memory of s where that is enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
