package cuda

import "fmt"

// A Description is a driver's description of itself and its devices. Fields whose query
// failed are zero, and listed among the problems.
type Description struct {
	Driver   string // "cuda" or "emu"
	Version  int    // 13000 for CUDA 13.0
	Devices  []DeviceDescription
	Peers    [][]Peer // Peers[i][j] is how device i accesses the memory of device j
	Problems []string
}

// VersionString is the version as people write it.
func (d Description) VersionString() string { return versionString(d.Version) }

// A DeviceDescription describes a device.
type DeviceDescription struct {
	Ordinal      int
	Name         string
	UUID         string // "GPU-…", as nvidia-smi has it
	PCI          string // "0000:1b:00.0"
	Major, Minor int    // compute capability
	SMs          int
	Memory       int // bytes
}

// A Peer is how a device accesses the memory of another one.
type Peer struct {
	Access bool
	Rank   int // of the link among those of this machine, 0 the best
	Link   Link
}

// Describe queries everything, and goes on after failures. It makes no context and
// costs less than a millisecond a device.
func Describe(d Driver) Description {
	out := Description{Driver: d.Name()}
	failed := func(err error) bool {
		if err != nil {
			out.Problems = append(out.Problems, err.Error())
		}
		return err != nil
	}
	var err error
	out.Version, err = d.DriverGetVersion()
	failed(err)
	n, err := d.DeviceGetCount()
	if failed(err) {
		return out
	}
	devices := make([]Device, n)
	for i := range n {
		dev, err := d.DeviceGet(i)
		if failed(err) {
			dev = Device(i)
		}
		devices[i] = dev
		out.Devices = append(out.Devices, describeDevice(d, i, dev, failed))
	}
	for i, dev := range devices {
		row := make([]Peer, n)
		for j, peer := range devices {
			if i != j {
				row[j] = describePeer(d, dev, peer, failed)
			}
		}
		out.Peers = append(out.Peers, row)
	}
	for i, dev := range devices {
		mode, err := d.DeviceGetAttribute(AttrComputeMode, dev)
		if failed(err) {
			continue
		}
		switch mode {
		case computeModeProhibited:
			out.Problems = append(out.Problems,
				fmt.Sprintf("device %d: its compute mode forbids all programs: nvidia-smi -c DEFAULT allows them", i))
		case computeModeExclusive:
			out.Problems = append(out.Problems,
				fmt.Sprintf("device %d: its compute mode lets in one process at a time: one rank to a device, and no other "+
					"program on it", i))
		}
	}
	return out
}

func describeDevice(d Driver, ordinal int, dev Device, failed func(error) bool) DeviceDescription {
	out := DeviceDescription{Ordinal: ordinal}
	var err error
	out.Name, err = d.DeviceGetName(dev)
	failed(err)
	if u, err := d.DeviceGetUuid(dev); !failed(err) {
		out.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	out.PCI, err = d.DeviceGetPCIBusId(dev)
	failed(err)
	out.Memory, err = d.DeviceTotalMem(dev)
	failed(err)
	attribute := func(a DeviceAttribute) int {
		v, err := d.DeviceGetAttribute(a, dev)
		failed(err)
		return v
	}
	out.Major, out.Minor = attribute(AttrComputeCapabilityMajor), attribute(AttrComputeCapabilityMinor)
	out.SMs = attribute(AttrMultiprocessorCount)
	return out
}

func describePeer(d Driver, dev, peer Device, failed func(error) bool) (p Peer) {
	var err error
	p.Link, err = LinkBetween(d, dev, peer)
	failed(err)
	p.Access = p.Link != NoLink
	p.Rank, err = d.DeviceGetP2PAttribute(P2PPerformanceRank, dev, peer)
	failed(err)
	return p
}
