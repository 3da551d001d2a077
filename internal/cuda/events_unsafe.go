package cuda

import "unsafe"

func (d *libcuda) EventCreate(flags EventFlags) (Event, error) {
	return made[Event](d, cuEventCreate, uintptr(flags))
}

func (d *libcuda) EventDestroy(e Event) error { return d.call(cuEventDestroy, uintptr(e)) }

func (d *libcuda) EventRecord(e Event, s Stream) error {
	return d.call(cuEventRecord, uintptr(e), uintptr(s))
}

func (d *libcuda) EventRecordWithFlags(e Event, s Stream, flags uint32) error {
	return d.call(cuEventRecordWithFlags, uintptr(e), uintptr(s), uintptr(flags))
}

func (d *libcuda) EventQuery(e Event) (bool, error) { return d.ready(cuEventQuery, uintptr(e)) }

func (d *libcuda) EventSynchronize(e Event) error { return d.call(cuEventSynchronize, uintptr(e)) }

func (d *libcuda) EventElapsedTime(start, end Event) (ms float32, err error) {
	err = d.callPtr(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(start), uintptr(end))
	return ms, err
}
