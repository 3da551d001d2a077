package verbs

// A phase is where an end of a rail is in its life. Both ends give a rail up together: each says so once, and a rail
// that both have given up carries nothing any more. Then the sending end may call it back: both make a new queue pair,
// and when a write over them was acknowledged slots go over the rail again.
//
//	sender     up → failing → down → asked → called → tried → up
//	receiver   up → failing → down         → called → tried → up
type phase uint32

const (
	railUp      phase = iota
	railFailing       // this end has given it up, and the peer has not said so yet
	railDown          // both have
	railAsked         // the sender has a new queue pair and has told the peer
	railCalled        // the peer's new queue pair is known, and this end's is to be led to it
	railTried         // the queue pairs are connected; whether anything comes through is not known yet
)

// A railEvent is something that happens to an end of a rail.
type railEvent uint8

const (
	railBroke      railEvent = iota // something went wrong here
	peerGaveUp                      // the peer says that it has given the rail up
	railMade                        // the sender has a new queue pair
	peerCalls                       // the peer says what its new queue pair is
	railJoined                      // this end's queue pair leads to the peer's
	railProved                      // the peer's device has acknowledged a write of the sender's
	peerHasProof                    // the sender says so
	railEventCount = iota
)

// railActions are what an end must do, in this order.
type railActions struct {
	kill bool // the queue pair neither sends nor receives any more
	say  byte // a kind of message that the peer is told, 0 for none
}

// step is what an event makes of a phase. It is pure. What does not fit is what the ends have said past each other,
// and changes nothing.
func (p phase) step(e railEvent, sender bool) (phase, railActions) {
	giveUp := railActions{kill: true, say: down}
	alive := p != railFailing && p != railDown
	switch {
	case e == railBroke && alive:
		return railFailing, giveUp
	case e == peerGaveUp && alive:
		return railDown, giveUp
	case e == peerGaveUp && p == railFailing:
		return railDown, railActions{}
	case e == railMade && sender && p == railDown:
		return railAsked, railActions{say: again}
	case e == peerCalls && (sender && p == railAsked || !sender && p == railDown):
		return railCalled, railActions{}
	case e == railJoined && sender && p == railCalled:
		return railTried, railActions{}
	case e == railJoined && p == railCalled:
		return railTried, railActions{say: again}
	case e == railProved && sender && p == railTried:
		return railUp, railActions{say: proved}
	case e == peerHasProof && !sender && p == railTried:
		return railUp, railActions{}
	}
	return p, railActions{}
}
