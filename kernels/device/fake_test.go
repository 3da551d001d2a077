package device

import (
	"bytes"
	"errors"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
)

// fake is a driver that loads modules and remembers launches.
type fake struct {
	cuda.Driver // nil: a call of any other method panics
	capability  int
	refuse      map[string]cuda.Result // by .target
	failing     map[string]error       // by the name of the call

	mu       sync.Mutex
	loaded   map[cuda.Module]string // .target
	loads    int
	mode     cuda.CaptureMode
	launches int
	launch   cuda.Launch
	args     args
}

func (f *fake) CtxGetCurrent() (cuda.Context, error) { return 0, nil }
func (f *fake) CtxPushCurrent(cuda.Context) error    { return f.failing["push"] }
func (f *fake) CtxPopCurrent() (cuda.Context, error) { return 1, nil }
func (f *fake) CtxGetDevice() (cuda.Device, error)   { return 3, f.failing["device"] }

func (f *fake) DeviceGetAttribute(a cuda.DeviceAttribute, _ cuda.Device) (int, error) {
	switch a {
	case cuda.AttrComputeCapabilityMajor:
		return f.capability / 10, f.failing["attribute"]
	case cuda.AttrComputeCapabilityMinor:
		return f.capability % 10, nil
	case cuda.AttrMultiprocessorCount:
		return 10, nil
	}
	return 0, errors.New("not asked for")
}

func (f *fake) ThreadExchangeStreamCaptureMode(m cuda.CaptureMode) (cuda.CaptureMode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.mode
	f.mode = m
	return old, nil
}

func (f *fake) ModuleLoadData(image []byte) (cuda.Module, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, rest, _ := bytes.Cut(image, []byte(".target "))
	target, _, _ := bytes.Cut(rest, []byte("\n"))
	if r, ok := f.refuse[string(target)]; ok {
		return 0, &cuda.Error{Call: "cuModuleLoadData", Result: r, Device: 3}
	}
	if f.mode != cuda.CaptureRelaxed {
		return 0, errors.New("loading is illegal while a stream captures")
	}
	f.loads++
	m := cuda.Module(f.loads)
	if f.loaded == nil {
		f.loaded = map[cuda.Module]string{}
	}
	f.loaded[m] = string(target)
	return m, nil
}

func (f *fake) ModuleUnload(m cuda.Module) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.loaded[m]; !ok {
		return errors.New("unloaded twice")
	}
	delete(f.loaded, m)
	return nil
}

func (f *fake) ModuleGetFunction(cuda.Module, string) (cuda.Function, error) {
	return 1, f.failing["function"]
}

func (f *fake) OccupancyMaxActiveBlocksPerMultiprocessor(cuda.Function, int, int) (int, error) {
	return 2, nil
}

func (f *fake) LaunchKernel(_ cuda.Function, l *cuda.Launch, b []byte) error {
	f.launches++
	f.launch = *l
	if copy(cuda.ArgsOf(&f.args), b) != len(b) {
		return errors.New("more parameters than args has")
	}
	return f.failing["launch"]
}
