package p2p

// A Desk is where processes of this host get files of another one. Descriptors of
// the driver cannot be opened by way of /proc: what they stand for hangs on the
// open file, so it is passed over a socket.
type Desk struct {
	Socket string // its name, which belongs to no file system
	Secret []byte // that callers have to know
}
