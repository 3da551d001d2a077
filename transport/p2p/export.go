package p2p

// An Export is where processes of this host get files of another one. Descriptors of
// the driver cannot be opened by way of /proc: what they stand for hangs on the
// open file, so it is passed over a socket.
type Export struct {
	Socket string // its name, which belongs to no file system
	Secret []byte // the key of the handshake (see internal/auth); it is never sent over Socket
}
