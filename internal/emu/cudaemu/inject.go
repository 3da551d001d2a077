package cudaemu

import (
	"math/rand/v2"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An injector makes calls fail.
type injector struct {
	rng    *rand.Rand
	faults []*Injection
}

func (i *injector) init(cfg Config) {
	i.rng = rand.New(rand.NewPCG(cfg.Seed, 0x6661756c74))
	for _, f := range cfg.Faults {
		i.faults = append(i.faults, &f)
	}
}

// check is the result that a call must fail with, 0 for none, or whether it must hang. The
// device is -1 where none is current.
func (i *injector) check(call string, device int) (r cuda.Result, hang bool) {
	for _, f := range i.faults {
		if f.Call != call || f.Device != 0 && f.Device-1 != device {
			continue
		}
		switch {
		case f.Nth > 0:
			if f.Nth--; f.Nth == 0 {
				f.Nth = -1
				r, hang = f.Result, f.Hang
			}
		case f.Nth == 0 && i.rng.Float64() < f.Chance:
			r, hang = f.Result, f.Hang
		}
	}
	return r, hang
}

// Inject adds a fault to those of Config.
func (m *Machine) Inject(f Injection) {
	m.lock()
	defer m.mu.Unlock()
	m.inject.faults = append(m.inject.faults, &f)
}

// LoseDevice kills the work of a device. Each later call in its context, and each that
// names it, fails with r: cuda.ErrDeviceUnavailable, cuda.ErrECCUncorrectable. It stays
// lost; memory of it that others have mapped can still be read, as after the death of a
// process.
func (m *Machine) LoseDevice(ordinal int, r cuda.Result) {
	m.lock()
	defer m.mu.Unlock()
	d := m.devices[ordinal]
	d.lost = r
	m.world.Kill(ordinal, &weakmem.Fault{Kind: weakmem.BadInstruction, Device: ordinal,
		Detail: "device lost: " + r.Error()})
	m.exec.kick()
}
