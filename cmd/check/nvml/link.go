package nvml

import (
	"errors"
	"fmt"
)

// maxLinks is how many NVLinks a GPU may have: NVML_NVLINK_MAX_LINKS.
const maxLinks = 36

// pciInfo is nvmlPciInfo_t.
type pciInfo struct {
	_                   [16]byte // busIdLegacy
	domain, bus, device uint32
	_                   [2]uint32 // pciDeviceId, pciSubSystemId
	_                   [32]byte  // busId
}

func (p *pciInfo) String() string { return fmt.Sprintf("%04x:%02x:%02x.0", p.domain, p.bus, p.device) }

func (a *asker) pci(name string, args ...uintptr) string {
	p := new(pciInfo)
	if !a.ask(name, append(args, addressOf(p))...) {
		return ""
	}
	return p.String()
}

// links are the links of the GPU. The list ends at the first index that NVML does not know.
func (a *asker) links() (list []NVLink) {
	for i := range uintptr(maxLinks) {
		active := new(uint32)
		if err := a.l.call("nvmlDeviceGetNvLinkState", a.d, i, addressOf(active)); err != nil {
			if i == 0 && !errors.Is(err, ErrNotSupported) {
				a.unanswered = append(a.unanswered, err.Error())
			}
			break
		}
		link := NVLink{Active: *active != 0, Version: -1, Errors: Errors{-1, -1, -1, -1}}
		if link.Active {
			link.Version = a.int("nvmlDeviceGetNvLinkVersion", i)
			link.Remote = a.pci("nvmlDeviceGetNvLinkRemotePciInfo_v2", i)
			link.Kind = map[int]string{0: "gpu", 1: "cpu", 2: "switch"}[a.int("nvmlDeviceGetNvLinkRemoteDeviceType", i)]
			count := func(kind uintptr) int64 { return a.long("nvmlDeviceGetNvLinkErrorCounter", i, kind) }
			link.Errors = Errors{Replay: count(0), Recovery: count(1), CRCFlit: count(2), CRCData: count(3)}
		}
		list = append(list, link)
	}
	return list
}
