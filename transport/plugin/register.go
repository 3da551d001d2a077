package plugin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A region is memory that the transport knows.
type region struct {
	mem.Region
	kind int
}

// Register is part of transport.Registrar: memory of the host, or of a GPU where the plugin's
// devices take that. Connections that are made later move it without a copy, by PublishFrom and
// NextInto. Register what both ends use before the first connection.
func (t *Transport) Register(m transport.Memory) (release func() error, err error) {
	r := m.Region
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := hostMemory
	if !r.IsHost() {
		kind = deviceMemory
	}
	if t.devices == nil {
		return nil, errors.New("plugin: register before listen")
	}
	for _, d := range t.devices {
		if d.memory&kind == 0 || kind == deviceMemory && t.lib.table.fn[fnIflush] == 0 {
			return nil, fmt.Errorf("plugin: register: %w", t.lib.failed("getProperties", fmt.Errorf("device %v takes no GPU memory", d)))
		}
	}
	known := &region{r, kind}
	all := append(slices.Clone(*t.regions.Load()), known)
	t.regions.Store(&all)
	return func() error { return t.unregister(known) }, nil
}

func (t *Transport) unregister(r *region) error {
	t.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(*t.regions.Load()), func(x *region) bool { return x == r })
	t.regions.Store(&all)
	movers := *t.movers.Load()
	t.mu.Unlock()
	var errs []error
	for _, m := range movers {
		errs = append(errs, m.unregister(r))
	}
	return errors.Join(errs...)
}

// span finds r in the memory that the transport knows, registered with q's comm the first
// time. The caller holds mu.
func (h *half) span(q *queue, r mem.Region) (s span, gpu, ok bool) {
	for _, known := range *h.t.regions.Load() {
		if known.Dev() != r.Dev() || r.Ptr() < known.Ptr() || r.Ptr()+uintptr(r.Len()) > known.Ptr()+uintptr(known.Len()) {
			continue
		}
		for _, k := range q.others {
			if k.region == known {
				return span{r.Ptr(), r.Len(), k.mr}, known.kind == deviceMemory, true
			}
		}
		mr, result := q.call.register(known.Ptr(), known.Len(), known.kind)
		if result != 0 {
			h.fail(fnRegMr, result)
			return s, false, false
		}
		q.others = append(q.others, registration{known, mr})
		return span{r.Ptr(), r.Len(), mr}, known.kind == deviceMemory, true
	}
	return s, false, false
}

// unregister gives back what span has registered.
func (h *half) unregister(r *region) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.direct == nil {
		return nil
	}
	for i, k := range h.direct.others {
		if k.region == r {
			h.direct.others = slices.Delete(h.direct.others, i, i+1)
			return h.result(fnDeregMr, h.direct.call.deregister(k.mr))
		}
	}
	return nil
}
