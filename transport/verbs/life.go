package verbs

// A phase is the state of one end of a rail. Both ends give a rail up together: each says so once, and a rail that
// both have given up carries nothing any more. Then the sending end may call the rail back: both ends make a new queue
// pair, and when a write over these is acknowledged, slots go over the rail again.
//
//	sender     up → failing → down → asked → called → tried → up
//	receiver   up → failing → down         → called → tried → up
type phase uint32

const (
	railUp      phase = iota
	railFailing       // this end has given the rail up, the peer has not said so yet
	railDown          // both ends have given the rail up
	railAsked         // the sender has a new queue pair and has told the peer
	railCalled        // the peer's new queue pair is known; this end's is not connected to it yet
	railTried         // the queue pairs are connected; it is not known yet whether a write comes through
)

// A railEvent is something that happens to an end of a rail.
type railEvent uint8

const (
	railBroke      railEvent = iota // something went wrong here
	peerGaveUp                      // the peer says that it has given the rail up
	railMade                        // the sender has a new queue pair
	peerCalls                       // the peer tells the number of its new queue pair
	railJoined                      // this end's queue pair is connected to the peer's
	railProved                      // the peer's device has acknowledged the sender's write
	peerHasProof                    // the sender has told of railProved
	railEventCount = iota
)

// railActions are what an end must do, in this order.
type railActions struct {
	kill bool // the queue pair neither sends nor receives any more
	say  byte // kind of the message to the peer, 0 for none
}

// step is the phase after an event, and the actions that the event needs. It is pure. An event that does not fit the
// phase comes from messages that crossed on the line, and changes nothing.
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
