package p2p

import (
	"encoding/binary"
	"errors"
)

// An Export says where processes of this host get files of a rank's GPU memory. The
// driver's descriptors cannot be opened by way of /proc, because the allocation belongs to
// the open file; so they are passed over a socket, one for all exports of a process.
type Export struct {
	Socket string // its abstract name, in no file system
	Secret []byte // the key of the handshake (see internal/auth); it is never sent over Socket
	ID     string // of what is exported, among all exports of the process
}

// A want is what a process asks a door for: some files of an export.
type want struct {
	id           string
	first, files int
}

func (w *want) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(w.first))
	b = binary.BigEndian.AppendUint32(b, uint32(w.files))
	return append(b, w.id...)
}

func parseWant(b []byte) (w want, err error) {
	if len(b) < 8 {
		return w, errors.New("a request that is cut short")
	}
	return want{string(b[8:]), int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))}, nil
}
