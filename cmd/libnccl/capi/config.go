package capi

import (
	"fmt"
	"math"
	"strconv"

	"github.com/ringo-go/ringo"
)

// A Config holds the fields of an ncclConfig_t that have an effect here.
type Config struct {
	Blocking bool
	MinCTAs  int    // 0 if left open
	MaxCTAs  int    // 0 if left open
	Policy   string // of CTAs, "" if left open
	Net      string // "" if left open
}

// configFields are the fields of ncclConfig_t that are read. Newer versions have more behind them.
type configFields struct {
	size           uintptr
	magic, version uint32

	blocking, cgaClusterSize int32
	minCTAs, maxCTAs         int32
	netName                  uintptr
	splitShare, trafficClass int32
	commName                 uintptr
	collnetEnable, ctaPolicy int32
}

// configMagic is in every ncclConfig_t.
const configMagic = 0xcafebeef

// unset is the value of a field that a program leaves open.
const unset = math.MinInt32

// undefined is an ncclConfig_t in which all fields are open.
var undefined = configFields{blocking: unset, cgaClusterSize: unset, minCTAs: unset, maxCTAs: unset, ctaPolicy: unset}

// ReadConfig reads an ncclConfig_t at an address; nil for address 0.
func ReadConfig(at uintptr) (*Config, error) {
	if at == 0 {
		return nil, nil
	}
	f := readConfig(at)
	bad := func(format string, a ...any) (*Config, error) {
		return nil, fmt.Errorf("%w: ncclConfig_t: %s", ringo.ErrInvalid, fmt.Sprintf(format, a...))
	}
	switch {
	case f.magic != configMagic:
		return bad("its magic is %#x: begin with NCCL_CONFIG_INITIALIZER", f.magic)
	case f.size < headerBytes || f.size > 1<<16:
		return bad("its size is %d bytes: begin with NCCL_CONFIG_INITIALIZER", f.size)
	case f.blocking != unset && f.blocking != 0 && f.blocking != 1:
		return bad("blocking is %d, want 0 or 1", f.blocking)
	case f.maxCTAs != unset && f.maxCTAs < 1:
		return bad("maxCTAs is %d, want 1 or more", f.maxCTAs)
	case f.minCTAs != unset && (f.minCTAs < 1 || f.maxCTAs != unset && f.minCTAs > f.maxCTAs):
		return bad("minCTAs is %d, maxCTAs %d", f.minCTAs, f.maxCTAs)
	case f.ctaPolicy != unset && (f.ctaPolicy < 0 || f.ctaPolicy > 3):
		return bad("CTAPolicy is %d, want 0 to 3", f.ctaPolicy)
	}
	c := &Config{Blocking: f.blocking != 0, Net: text(f.netName)}
	if f.maxCTAs != unset {
		c.MaxCTAs = int(f.maxCTAs)
	}
	if f.minCTAs != unset {
		c.MinCTAs = int(f.minCTAs)
	}
	if f.ctaPolicy != unset {
		c.Policy = strconv.Itoa(int(f.ctaPolicy))
	}
	return c, nil
}
