package check

import "strings"

// A component is a host of the job, or one thing in it.
type component struct {
	Host string `json:"host,omitempty"`
	Part string `json:"part,omitempty"` // "GPU 3", "eth0", "rank 5", "/dev/shm", …; empty is the host
}

func (p component) String() string {
	switch {
	case p.Host == "":
		return p.Part
	case p.Part == "":
		return "host " + p.Host
	}
	return "host " + p.Host + ", " + p.Part
}

// IsGPU says whether the component is a GPU.
func (p component) IsGPU() bool { return strings.HasPrefix(p.Part, "GPU ") }

// A subject is the thing measured: a component, or, with To, the way from that component to another. Subjects
// can be compared by ==. The zero subject is the whole job.
type subject struct {
	component
	To component `json:"to,omitzero"`
}

// of is the subject of one component; part may be empty.
func of(host, part string) subject { return subject{component: component{host, part}} }

// pairOf is the subject of the way from a to b.
func pairOf(a, b component) subject { return subject{a, b} }

// IsPair says whether the subject is a way between two places.
func (s subject) IsPair() bool { return s.To != component{} }

func (s subject) String() string {
	switch {
	case s == subject{}:
		return "the job"
	case !s.IsPair():
		return s.component.String()
	case s.To.Host == s.Host:
		return s.component.String() + " to " + s.To.Part
	}
	return s.component.String() + " to " + s.To.String()
}

// A measurement is one value or fact that a rank has found.
type measurement struct {
	Stage    string  `json:"stage"` // run fills it in
	Rank     int     `json:"rank"`  // who measured it; run fills it in
	Subject  subject `json:"subject"`
	Quantity string  `json:"quantity"` // "bandwidth", "latency", "clock offset", "driver", "error", …
	Value    float64 `json:"value"`
	Unit     string  `json:"unit,omitempty"` // "GB/s", "us", "s", "B", …
	Text     string  `json:"text,omitempty"` // for facts that are no number
}
