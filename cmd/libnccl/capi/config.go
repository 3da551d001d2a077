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

// configFields are the fields of NCCL 2.28's ncclConfig_t. Newer versions have more behind them.
type configFields struct {
	size           uintptr
	magic, version uint32

	blocking, cgaClusterSize                int32
	minCTAs, maxCTAs                        int32
	netName                                 uintptr
	splitShare, trafficClass                int32
	commName                                uintptr
	collnetEnable, ctaPolicy                int32
	shrinkShare, nvlsCTAs                   int32
	nChannelsPerNetPeer, nvlinkCentricSched int32
}

// configMagic is in every ncclConfig_t.
const configMagic = 0xcafebeef

// unset is the value of a field that a program leaves open.
const unset = math.MinInt32

// undefined is an ncclConfig_t in which all fields are open.
var undefined = configFields{blocking: unset, cgaClusterSize: unset, minCTAs: unset, maxCTAs: unset, splitShare: unset,
	trafficClass: unset, collnetEnable: unset, ctaPolicy: unset, shrinkShare: unset, nvlsCTAs: unset,
	nChannelsPerNetPeer: unset, nvlinkCentricSched: unset}

// A configField is a field of which NCCL takes some values alone.
type configField struct {
	name      string
	since     uint32 // the version of NCCL that has it: what an older program has there counts for nothing
	of        func(*configFields) *int32
	low, high int32
}

var configTable = []configField{
	{"blocking", 21400, func(f *configFields) *int32 { return &f.blocking }, 0, 1},
	{"cgaClusterSize", 21700, func(f *configFields) *int32 { return &f.cgaClusterSize }, 0, math.MaxInt32},
	{"minCTAs", 21700, func(f *configFields) *int32 { return &f.minCTAs }, 1, math.MaxInt32},
	{"maxCTAs", 21700, func(f *configFields) *int32 { return &f.maxCTAs }, 1, math.MaxInt32},
	{"splitShare", 0, func(f *configFields) *int32 { return &f.splitShare }, 0, 1},
	{"collnetEnable", 22700, func(f *configFields) *int32 { return &f.collnetEnable }, 0, 1},
	{"CTAPolicy", 22700, func(f *configFields) *int32 { return &f.ctaPolicy }, 0, 3},
	{"shrinkShare", 22700, func(f *configFields) *int32 { return &f.shrinkShare }, 0, 1},
	{"nvlsCTAs", 22700, func(f *configFields) *int32 { return &f.nvlsCTAs }, 1, math.MaxInt32},
	{"nChannelsPerNetPeer", 22800, func(f *configFields) *int32 { return &f.nChannelsPerNetPeer }, 1, 64},
	{"nvlinkCentricSched", 22800, func(f *configFields) *int32 { return &f.nvlinkCentricSched }, 0, 1},
}

// wants is what a field may be.
func (c configField) wants() string {
	if c.high == math.MaxInt32 {
		return fmt.Sprintf("%d or more", c.low)
	}
	if c.high == 1 {
		return "0 or 1"
	}
	return fmt.Sprintf("%d to %d", c.low, c.high)
}

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
	case f.size < headerBytes:
		return bad("its size is %d bytes: begin with NCCL_CONFIG_INITIALIZER", f.size)
	case f.magic != configMagic:
		return bad("its magic is %#x: begin with NCCL_CONFIG_INITIALIZER", f.magic)
	}
	if f.version < 21700 {
		f.netName = 0
	}
	for _, field := range configTable {
		v := field.of(&f)
		if f.version < field.since {
			*v = unset
		}
		if *v != unset && (*v < field.low || *v > field.high) {
			return bad("%s is %d, want %s", field.name, *v, field.wants())
		}
	}
	if f.minCTAs > f.maxCTAs { // an open one is less than all others
		if f.maxCTAs == unset {
			return bad("minCTAs is %d and maxCTAs is not set: set both", f.minCTAs)
		}
		return bad("minCTAs is %d, maxCTAs %d", f.minCTAs, f.maxCTAs)
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
