package bootstrap

import "time"

// protocol is the name of the handshake.
const protocol = "ringo rendezvous 6"

const (
	handshakeTime = 5 * time.Second         // for a connection to prove itself
	maxUnproven   = 1024                    // connections that have not yet proved themselves
	lingerTime    = 2 * time.Second         // how long the listener stays open for late comers, to tell them why they are late
	goodbyeTime   = time.Second             // for the hub to answer a last message, and for a rank to close after bye
	flushTime     = 400 * time.Millisecond  // for last messages to be written
	pulseTime     = 3 * time.Second         // for a rank to find out whether the hub lives
	witnessTime   = pulseTime + time.Second // for a witness to answer
	answeredSince = 2 * time.Second         // when a host has acknowledged something at last, so that it counts as heard
)
