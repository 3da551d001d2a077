package rendezvous

// Stages of shutdown. Ranks that have opened memory of each other part in stages: the next stage is safe when all ranks
// have come to the one before. A rank that has died, or that has closed its group, has come to all stages.
const (
	Left      = iota + 1 // the rank has said goodbye: its operations use no other rank's memory any more
	Apart                // the rank has closed the memory of other ranks that it had open
	numStages            // one more than the last stage
)

// stages is how far the ranks have shut down.
type stages struct {
	out   *outbox
	stays []bool         // by rank: it has left, and waits for the others
	at    []int          // by rank: the last stage it has come to
	count [numStages]int // by stage: the ranks that have come to it
}

func newStages(size int, out *outbox) stages {
	return stages{out: out, stays: make([]bool, size), at: make([]int, size)}
}

// reach notes that a rank has come to a stage. If it was the last rank, those that stay are told.
func (s *stages) reach(rank, stage int) {
	for s.at[rank] < stage {
		s.at[rank]++
		if s.count[s.at[rank]]++; s.count[s.at[rank]] < len(s.at) {
			continue
		}
		var staying []int
		for rank, stays := range s.stays {
			if stays {
				staying = append(staying, rank)
			}
		}
		s.out.tell(staying, &Parted{s.at[rank]})
	}
}

// end notes that a rank's connection has ended.
func (s *stages) end(rank int) {
	s.stays[rank] = false
	s.reach(rank, Apart)
}
