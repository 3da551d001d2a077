package ras

import (
	"encoding/json"
	"fmt"
	"time"
)

// The JSON of NCCL's RAS, in the order of its fields.
type (
	jsonJob struct {
		Version string     `json:"nccl_version"`
		Runtime int        `json:"cuda_runtime_version"`
		Driver  int        `json:"cuda_driver_version"`
		Time    string     `json:"timestamp"`
		Count   int        `json:"communicators_count"`
		Comms   []jsonComm `json:"communicators"`
		RAS     struct {
			Seconds  jsonSeconds `json:"collection_time_sec"`
			Timeouts int         `json:"timeouts_count"`
		} `json:"ras"`
	}
	jsonComm struct {
		Hash    string        `json:"hash"`
		Second  string        `json:"secondary_hash"`
		Size    int           `json:"size"`
		Here    int           `json:"ranks_count"`
		Gone    int           `json:"missing_ranks_count"`
		Ranks   []jsonRank    `json:"ranks"`
		Missing []jsonMissing `json:"missing_ranks"`
	}
	jsonPlace struct {
		Rank   int    `json:"rank"`
		Host   string `json:"host"`
		Pid    int    `json:"pid"`
		Device int    `json:"cuda_dev"`
		NVML   int    `json:"nvml_dev"`
	}
	jsonRank struct {
		jsonPlace
		Status struct {
			Init      int  `json:"init_state"`
			Async     int  `json:"async_error"`
			Finalized bool `json:"finalize_called"`
			Destroyed bool `json:"destroy_flag"`
			Aborted   bool `json:"abort_flag"`
		} `json:"status"`
		Counts jsonCounts `json:"collective_counts"`
	}
	jsonMissing struct {
		jsonPlace
		Status struct {
			Silent bool `json:"unresponsive"`
			Dead   bool `json:"considered_dead"`
		} `json:"status"`
	}
	jsonSeconds time.Duration
	jsonCounts  [len(Kinds)]uint64
)

func (s jsonSeconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

func (c jsonCounts) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range Kinds {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:%d", name, c[i])
	}
	return append(b, '}'), nil
}

// place is where a rank is, as far as that is known.
func (r *Rank) place() jsonPlace {
	p := jsonPlace{r.Rank, r.Card.Host, r.Card.Pid, r.Device, r.NVML}
	if p.Pid == 0 {
		p.Host, p.Pid = "unknown", -1
	}
	return p
}

// timeLayout is of all times that answers name.
const timeLayout = "2006-01-02 15:04:05"

// json is a survey as JSON.
func (s *server) json(x *Survey) string {
	driver := s.o.driver()
	j := jsonJob{Version: s.o.version(), Runtime: driver, Driver: driver, Time: x.Began.Format(timeLayout),
		Count: len(x.Comms), Comms: []jsonComm{}}
	j.RAS.Seconds, j.RAS.Timeouts = jsonSeconds(x.Took), x.Timeouts
	for i := range x.Comms {
		c := &x.Comms[i]
		first, second, third := c.Hash()
		out := jsonComm{
			Hash: fmt.Sprintf("0x%016x", first), Second: fmt.Sprintf("0x%016x:0x%016x", second, third), Size: c.Size,
			Here: len(c.Ranks), Gone: len(c.Missing), Ranks: []jsonRank{}, Missing: []jsonMissing{},
		}
		for k := range c.Ranks {
			r := &c.Ranks[k]
			one := jsonRank{jsonPlace: r.place(), Counts: r.Now.Counts}
			one.Status.Async, one.Status.Finalized, one.Status.Destroyed, one.Status.Aborted = r.Now.Async, r.Now.Finalized,
				r.Now.Destroyed, r.Now.Aborted
			out.Ranks = append(out.Ranks, one)
		}
		for k := range c.Missing {
			r := &c.Missing[k]
			one := jsonMissing{jsonPlace: r.place()}
			one.Status.Silent, one.Status.Dead = r.Heard == silent || r.Heard == dead, r.Heard == dead
			out.Missing = append(out.Missing, one)
		}
		j.Comms = append(j.Comms, out)
	}
	b, err := json.MarshalIndent(&j, "", "  ")
	if err != nil { // cannot happen: all fields have a JSON form
		return fmt.Sprintf("ERROR: %v\n", err)
	}
	return string(b) + "\n"
}

// version is the version of NCCL in words.
func (o *Options) version() string {
	return fmt.Sprintf("%d.%d.%d", o.Version/10000, o.Version/100%100, o.Version%100)
}

func (o *Options) driver() int {
	if o.Driver == nil {
		return 0
	}
	return o.Driver()
}
