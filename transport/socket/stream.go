package socket

import "net"

// newStreams takes over all sockets of a connection, or closes them all.
func newStreams(t *Transport, conns []net.Conn) ([]*stream, error) {
	var all []*stream
	for i, c := range conns {
		tune(c)
		s, err := newStream(t, c)
		if err != nil {
			for _, s := range all {
				s.close()
			}
			for _, c := range conns[i+1:] {
				c.Close()
			}
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// farewell writes a credit of 0, which means that the receiver closes. Any goroutine
// may call it at any time.
func (s *stream) farewell() { _, _ = s.write([]byte{0}) }
