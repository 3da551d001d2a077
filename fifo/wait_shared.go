package fifo

// NewProducer is the writing end of a queue in memory that another process
// maps too. The memory must be zero at the start, be aligned to 64 bytes, have
// Size bytes of g, and stay until the Producer is closed and drained.
func NewProducer(memory []byte, g Geometry, how Waiting) (*Producer, error) {
	r, err := newRing(memory, g)
	if err != nil {
		return nil, err
	}
	p := new(Producer)
	p.init(r, how, sharedParker{}, sharedParker{})
	return p, nil
}

// NewConsumer is the reading end; see NewProducer.
func NewConsumer(memory []byte, g Geometry, how Waiting) (*Consumer, error) {
	r, err := newRing(memory, g)
	if err != nil {
		return nil, err
	}
	c := new(Consumer)
	c.init(r, how, sharedParker{}, sharedParker{})
	return c, nil
}
