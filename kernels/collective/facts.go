package collective

// Facts are what an engine of a GPU knows of a job for a schedule, whatever carries the job out.
type Facts struct {
	Lanes int // that the job may have

	Message     bool // the program is a single send or receive
	Independent bool // the steps may happen in any order, and side by side
	Messages    bool // every step is a message of its own, on all ranks; only of an independent job
	OneLaunch   bool // one launch holds the messages of all steps; only of an independent job
	Disjoint    bool // no step writes memory that another one reads; only of an independent job

	Captured bool // a graph holds the job
	Uneven   bool // chunks differ in length
	Aligned  bool // chunks begin at multiples of 16 bytes; where data are combined, those of Out
	Vectors  bool // chunks are whole vectors of 16 bytes; true where data are combined
	Bulk     bool // there are kernels of bulk copies for the program; only of an aligned job

	LingerLanes int // of lingering kernels, 0 if there are none
}

// A Way is what carries out a job for a schedule, on a GPU; core/choice decides it.
type Way uint8

const (
	ByThreads    Way = iota // the interpreter, whose threads move the data
	ByBulk                  // the interpreter, by bulk copies
	ByLinger                // a kernel of bulk copies that waits for further jobs
	BySideBySide            // all steps as messages, in one launch if they are not messages on all ranks
	ByMessages              // a message among others
)
