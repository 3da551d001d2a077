// Streams of the real driver.

package cuda

func (d *libcuda) StreamCreate(flags StreamFlags, priority int) (Stream, error) {
	return made[Stream](d, cuStreamCreateWithPriority, uintptr(flags), uintptr(priority))
}

func (d *libcuda) StreamDestroy(s Stream) error { return d.call(cuStreamDestroy, uintptr(s)) }

func (d *libcuda) StreamSynchronize(s Stream) error { return d.call(cuStreamSynchronize, uintptr(s)) }

func (d *libcuda) StreamQuery(s Stream) (bool, error) { return d.ready(cuStreamQuery, uintptr(s)) }

func (d *libcuda) StreamWaitEvent(s Stream, e Event, flags uint32) error {
	return d.call(cuStreamWaitEvent, uintptr(s), uintptr(e), uintptr(flags))
}

func (d *libcuda) StreamGetCtx(s Stream) (Context, error) {
	return getOf[Context](d, cuStreamGetCtx, uintptr(s))
}

func (d *libcuda) StreamGetFlags(s Stream) (StreamFlags, error) {
	return getOf[StreamFlags](d, cuStreamGetFlags, uintptr(s))
}

func (d *libcuda) StreamGetPriority(s Stream) (int, error) {
	p, err := getOf[uint32](d, cuStreamGetPriority, uintptr(s))
	return int(int32(p)), err
}

func (d *libcuda) StreamGetId(s Stream) (uint64, error) {
	return getOf[uint64](d, cuStreamGetId, uintptr(s))
}

func (d *libcuda) StreamWriteValue32(s Stream, p uintptr, v uint32, flags uint32) error {
	return d.call(cuStreamWriteValue32, uintptr(s), p, uintptr(v), uintptr(flags))
}

func (d *libcuda) StreamWriteValue64(s Stream, p uintptr, v uint64, flags uint32) error {
	return d.call(cuStreamWriteValue64, uintptr(s), p, uintptr(v), uintptr(flags))
}

func (d *libcuda) StreamWaitValue32(s Stream, p uintptr, v uint32, flags WaitFlags) error {
	return d.call(cuStreamWaitValue32, uintptr(s), p, uintptr(v), uintptr(flags))
}

func (d *libcuda) StreamWaitValue64(s Stream, p uintptr, v uint64, flags WaitFlags) error {
	return d.call(cuStreamWaitValue64, uintptr(s), p, uintptr(v), uintptr(flags))
}
