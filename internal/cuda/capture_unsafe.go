package cuda

import (
	"slices"
	"unsafe"
)

func (d *libcuda) StreamBeginCapture(s Stream, mode CaptureMode) error {
	return d.call(cuStreamBeginCapture, uintptr(s), uintptr(mode))
}

func (d *libcuda) StreamBeginCaptureToGraph(s Stream, g Graph, after []GraphNode, mode CaptureMode) error {
	return d.callPtr(cuStreamBeginCaptureToGraph, uintptr(s), uintptr(g), uintptr(unsafe.Pointer(unsafe.SliceData(after))),
		0, uintptr(len(after)), uintptr(mode))
}

func (d *libcuda) StreamEndCapture(s Stream) (Graph, error) {
	return getOf[Graph](d, cuStreamEndCapture, uintptr(s))
}

func (d *libcuda) StreamIsCapturing(s Stream) (CaptureStatus, error) {
	return getOf[CaptureStatus](d, cuStreamIsCapturing, uintptr(s))
}

func (d *libcuda) StreamGetCaptureInfo(s Stream) (CaptureInfo, error) {
	var o struct {
		status uint32
		id     uint64
		graph  Graph
		nodes  *GraphNode // the driver's own memory, good until the next call
		n      uintptr
	}
	err := d.callPtr(cuStreamGetCaptureInfo, uintptr(s), uintptr(unsafe.Pointer(&o.status)),
		uintptr(unsafe.Pointer(&o.id)),
		uintptr(unsafe.Pointer(&o.graph)), uintptr(unsafe.Pointer(&o.nodes)), uintptr(unsafe.Pointer(&o.n)))
	if err != nil || CaptureStatus(o.status) != CaptureActive {
		return CaptureInfo{Status: CaptureStatus(o.status)}, err
	}
	info := CaptureInfo{Status: CaptureActive, ID: o.id, Graph: o.graph}
	if o.n > 0 {
		info.Dependencies = slices.Clone(unsafe.Slice(o.nodes, o.n))
	}
	return info, nil
}

func (d *libcuda) StreamUpdateCaptureDependencies(s Stream, nodes []GraphNode, flags uint32) error {
	return d.callPtr(cuStreamUpdateCaptureDependencies, uintptr(s), uintptr(unsafe.Pointer(unsafe.SliceData(nodes))),
		uintptr(len(nodes)), uintptr(flags))
}

func (d *libcuda) ThreadExchangeStreamCaptureMode(mode CaptureMode) (CaptureMode, error) {
	err := d.callPtr(cuThreadExchangeStreamCaptureMode, uintptr(unsafe.Pointer(&mode)))
	return mode, err
}
