package device

import (
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cuda"
)

// Schema names the format of a Report; it changes when old readers would err.
const Schema = "ringo-probe/1"

// A Report holds all measurements of a run, and a description of the device.
type Report struct {
	bench.Header
	Driver   Driver     `json:"driver"`
	GPU      GPU        `json:"gpu"`
	Notes    []string   `json:"notes,omitempty"`
	Rows     []Row      `json:"rows"`
	Launches []Launch   `json:"launches,omitempty"`
	First    []FirstUse `json:"first_use,omitempty"`
	PTX      Texts      `json:"ptx"`
}

// Driver is the CUDA driver.
type Driver struct {
	Name    string `json:"name"`    // "cuda" or "emu"
	Version int    `json:"version"` // 13000 for CUDA 13.0
}

// GPU is the device.
type GPU struct {
	Name       string `json:"name"`
	PCI        string `json:"pci"`
	Capability string `json:"capability"` // "9.0"
	SMs        int    `json:"sms"`
	Memory     int    `json:"memory"` // bytes
	L2         int    `json:"l2"`     // bytes
	ClockKHz   int    `json:"clock_khz"`
}

// A Row is a way to move memory at one size.
type Row struct {
	What    string `json:"what"` // "copy" (by the driver) or "combine"
	Type    string `json:"type,omitempty"`
	Op      string `json:"op,omitempty"`
	Sources int    `json:"sources"`
	Size    int64  `json:"size"`  // bytes of each source and of the result
	Moved   int64  `json:"moved"` // bytes read and written, size × (sources + 1)
	Time
	Bandwidth float64 `json:"gbs"`               // Moved/Time, 10⁹ bytes a second
	OfCopy    float64 `json:"of_copy,omitempty"` // Bandwidth relative to the copy of the same size
	Checked   int64   `json:"checked"`           // bytes of the result compared
	Wrong     int64   `json:"wrong"`             // of these, different
}

// Time is the time of one launch of many back to back: the median of repetitions, and the least.
type Time struct {
	Median     float64 `json:"time_us"`
	Min        float64 `json:"min_us"`
	Iterations int     `json:"iterations"` // of each repetition
}

// timeOf is the Time of measurements in microseconds.
func timeOf(us []float64, iterations int) Time {
	us = slices.Sorted(slices.Values(us))
	return Time{Median: us[len(us)/2], Min: us[0], Iterations: iterations}
}

// note says what is special about the run.
func (r *Report) note(cfg Config) {
	if r.Driver.Name == "emu" {
		r.Notes = append(r.Notes, "emulated: results are real, times mean nothing")
	}
	r.Notes = append(r.Notes, fmt.Sprintf("medians of %d repetitions; bandwidth counts reads and writes", cfg.Repetitions))
}

// wrong is how many bytes were wrong in all.
func (r *Report) wrong() (n int64) {
	for i := range r.Rows {
		n += r.Rows[i].Wrong
	}
	return n
}

// describe queries driver and device. The device's context is current.
func describe(d cuda.Driver, ordinal int) (Driver, GPU, error) {
	driver := Driver{Name: d.Name()}
	var g GPU
	dev, err := d.DeviceGet(ordinal)
	if err != nil {
		return driver, g, err
	}
	major, minor := 0, 0
	attribute := func(a cuda.DeviceAttribute, v *int) func() error {
		return func() (err error) { *v, err = d.DeviceGetAttribute(a, dev); return err }
	}
	for _, ask := range []func() error{
		func() (err error) { driver.Version, err = d.DriverGetVersion(); return err },
		func() (err error) { g.Name, err = d.DeviceGetName(dev); return err },
		func() (err error) { g.PCI, err = d.DeviceGetPCIBusId(dev); return err },
		func() (err error) { g.Memory, err = d.DeviceTotalMem(dev); return err },
		attribute(cuda.AttrComputeCapabilityMajor, &major), attribute(cuda.AttrComputeCapabilityMinor, &minor),
		attribute(cuda.AttrMultiprocessorCount, &g.SMs), attribute(cuda.AttrL2CacheSize, &g.L2),
		attribute(cuda.AttrClockRate, &g.ClockKHz),
	} {
		if err := ask(); err != nil {
			return driver, g, err
		}
	}
	g.Capability = fmt.Sprintf("%d.%d", major, minor)
	return driver, g, nil
}
