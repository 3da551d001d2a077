// Package bootstrap connects the ranks of a job, for the root package and for launchers.
// The ranks know nothing of each other but one short secret, the ID. With it they find
// each other, prove that they belong to the job, gather small data, and hear of each
// other's death, departure and disagreement.
//
// One process serves the ID: its hub is the centre of a star. Every rank holds
// one connection to the hub, for as long as the group lives:
//
//	rank                                   hub
//	hello      nonce                   →
//	                                   ←   hello      nonce
//	proof      rank, size              →
//	                                   ←   proof
//	                                   ←   welcome, or refusal and why
//	          … until all ranks are here …
//	                                   ←   roster     who has come, if the group may begin without some (Meet)
//	                                   ←   start
//	part       bytes                   →
//	                                   ←   gathered   everybody's bytes
//	                                   ←   held       the head of this rank's host has them, if they are long
//	resend     the head is gone        →
//	withdraw   a part                  →
//	                                   ←   withdrawn  who gave up, who had not come (to all)
//	inquire    position                →
//	                                   ←   where      (to all others)
//	position                           →
//	                                   ←   silent     who answers nothing
//	late       where it was stopped    →
//	                                   ←   halt       (to all others)
//	regroup    how long it waits       →
//	                                   ←   regrouped  who goes on, and where (to all)
//	fail       reason                  →
//	                                   ←   failed     who and why (to all others)
//	leave      position                →
//	                                   ←   bye        (to all others: left)
//	parted     a stage                 →
//	                                   ←   parted     all have come to that stage (to those that stay)
//
// # What the key protects
//
// Hello and proof are the handshake of package internal/auth. The rank proves
// first that it has the key inside the ID: the proof covers fresh nonces of both
// sides and the rank's whole claim. So a connection without the key gets no bytes
// made with the key. Neither side believes a message before the other's proof, and
// Join goes on trying when something else answers. The hub drops connections that
// have not proved themselves within 5 seconds. Of more than 1,024 such connections
// it drops the oldest, and it writes a limited number of lines about them into the log.
//
// The trap: without JoinOptions.TLS connections are authenticated when they begin, and
// neither encrypted nor protected afterwards. An attacker who can change bytes on the way
// can change the ranks' data. With TLS they go over TLS 1.3, and the proofs hold for that
// channel alone. And a key is only as good as its secret: the key of NewID is random; the
// key of IDFor is derived from a text, slowly, so that guesses are slow too. A process that
// pretends to be the hub can record one proof and then guess without limit, unless both
// sides show certificates.
//
// # Deaths
//
// A rank whose connection ends without a leave has died, and every other rank
// is told within milliseconds. A host that falls silent is found after about 15
// seconds, because its kernel does not answer. A process that is merely stopped is not
// dead: its kernel answers. A rank whose own connection ends asks at a second port of the
// hub's process whether that process has died or this rank was cut off.
package bootstrap
