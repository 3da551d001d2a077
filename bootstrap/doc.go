// Package bootstrap is how ranks that know nothing of each other but a short
// secret, the ID, find each other, trust each other and learn of each other's
// death.
//
// One process serves the ID: its hub is the centre of a star. Every rank holds
// one connection to it, for as long as the group lives:
//
//	rank                                   hub
//	hello      version, nonce a        →
//	                                   ←   challenge  nonce b, proof(a, b)
//	claim      rank, size, proof(b, a) →
//	                                   ←   welcome, or refusal and why
//	          … until all ranks are here …
//	                                   ←   start
//	share      bytes                   →
//	                                   ←   gathered   everybody's bytes
//	fail       reason                  →
//	                                   ←   failed     rank, died, reason
//	leave                              →
//	                                   ←   bye        (to all others: left)
//
// A proof is an HMAC-SHA256 with the key inside the ID over both nonces and all
// that was said. Neither side believes a word before it has seen the other's;
// whoever cannot give one, or is not done within seconds, is dropped with one
// line in the log. Connections are authenticated, not encrypted.
//
// A rank whose connection ends without a leave has died, and every other rank
// is told within milliseconds. Hosts that fall silent are found by the
// kernel's keep-alive after about 15 seconds; a process that is merely stopped
// is not dead.
package bootstrap
