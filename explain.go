package ringo

import (
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/core/paths"
)

// Networks are the networks by which a Config may connect hosts, the best first. The Probe of each says what it has on
// this machine, or why it has nothing. The ranks of a communicator use the first network that all of them have.
func (c Config) Networks() ([]paths.Network, error) {
	pc := c.paths()
	return pc.Networks()
}

// Explain says how n ranks, in blocks of local on a host (0: all on one), would
// carry out a collective of float32 whose Count elements take bytes, and why, without
// doing it. cfg gives Algo and Deterministic.
func Explain(kind Kind, n, local, bytes, root int, cfg Config) (Choice, error) {
	if err := cfg.check(); err != nil {
		return Choice{}, err
	}
	return choice.Explain(kind, n, local, bytes, root, cfg.choice())
}

// ExplainDevice is Explain for GPU memory. cfg gives Algo, Deterministic, Plan, MaxBlocks,
// MinBlocks and BlockPolicy. A kernel that has no steps has no Schedule.
func ExplainDevice(kind Kind, n, local, bytes, root int, gpus GPUs, cfg Config) (Choice, error) {
	if err := cfg.check(); err != nil {
		return Choice{}, err
	}
	return choice.ExplainGPU(kind, n, local, bytes, root, gpus, cfg.choice())
}

// DeviceAlgorithms are the algorithms that can carry out a collective on GPU memory
// here, for Count elements of this many bytes, in registered memory or not; the
// words are those of Config.Algo and of a Plan.
func (c *Comm) DeviceAlgorithms(kind Kind, bytes int, registered bool) []string {
	if !kind.Valid() || !c.onGPU() {
		return nil
	}
	return c.gpu.Chooser().Names(kind, bytes, registered)
}

// DeviceChoice is the one of DeviceAlgorithms that the communicator takes, and why, for sums of float32.
func (c *Comm) DeviceChoice(kind Kind, bytes int, registered bool) (algorithm, because string) {
	if !kind.Valid() || !c.onGPU() {
		return "", c.noGPU
	}
	ans := c.gpu.Chooser().Choose(choice.Question{Kind: kind, Bytes: bytes, Type: Float32, OnGPU: true,
		Registered: registered})
	return ans.Algo.String(), ans.Why
}
