package check

import "strings"

// A Place is a host of the job, or one thing in it.
type Place struct {
	Host string `json:"host,omitempty"`
	Part string `json:"part,omitempty"` // "GPU 3", "eth0", "rank 5", "/dev/shm", …; empty is the host
}

func (p Place) String() string {
	switch {
	case p.Host == "":
		return p.Part
	case p.Part == "":
		return "host " + p.Host
	}
	return "host " + p.Host + ", " + p.Part
}

// IsGPU says whether the place is a GPU.
func (p Place) IsGPU() bool { return strings.HasPrefix(p.Part, "GPU ") }

// A Subject is what was measured: a place, or with To the way from a place to another. It is
// comparable. The zero Subject is the whole job.
type Subject struct {
	Place
	To Place `json:"to,omitzero"`
}

// Of is the subject of one place; part may be empty.
func Of(host, part string) Subject { return Subject{Place: Place{host, part}} }

// Between is the subject of the way from a to b.
func Between(a, b Place) Subject { return Subject{a, b} }

// IsPair says whether the subject is a way between two places.
func (s Subject) IsPair() bool { return s.To != Place{} }

func (s Subject) String() string {
	switch {
	case s == Subject{}:
		return "the job"
	case !s.IsPair():
		return s.Place.String()
	case s.To.Host == s.Host:
		return s.Place.String() + " to " + s.To.Part
	}
	return s.Place.String() + " to " + s.To.String()
}

// A Measurement is one thing that a rank has measured or found out.
type Measurement struct {
	Stage    string  `json:"stage"` // Run fills it in
	Rank     int     `json:"rank"`  // who measured it; Run fills it in
	Subject  Subject `json:"subject"`
	Quantity string  `json:"quantity"` // "bandwidth", "latency", "clock offset", "driver", "error", …
	Value    float64 `json:"value"`
	Unit     string  `json:"unit,omitempty"` // "GB/s", "us", "s", "B", …
	Text     string  `json:"text,omitempty"` // of what is no number
}
