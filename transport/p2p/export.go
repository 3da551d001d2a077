package p2p

// An Export says where processes of this host get the files of a span's allocations.
// The driver's descriptors cannot be opened by way of /proc, because the allocation
// belongs to the open file; so they are passed over a socket.
type Export struct {
	Socket string // its abstract name, in no file system
	Secret []byte // the key of the handshake (see internal/auth); it is never sent over Socket
}
