// Package ringotest runs test functions on the ranks of a communicator. It is for tests of programs that use Ringo:
// over goroutines or processes, over every transport or emulated GPUs, with a time-out that says which rank waits for
// what, and a check for leaks.
//
//	func TestSum(t *testing.T) {
//		ringotest.Run(t, 4, func(c *ringo.Comm) {
//			x := []float32{float32(c.Rank())}
//			if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
//				t.Fatal(err)
//			}
//			if x[0] != 6 {
//				t.Fatalf("rank %d has %v", c.Rank(), x[0])
//			}
//		}, ringotest.Over(ringotest.Inproc, ringotest.TCP))
//	}
//
// The function runs once for each rank, at the same time. A rank that panics, or ends by t.FailNow or t.Fatal, fails
// the test and aborts the communicator, so that the other ranks get an error in place of waiting for it. Of gives a
// rank's Rank: a name for what it reports, random numbers that a seed repeats. The communicator is closed when the
// function has returned.
//
// A hang fails after a minute (Timeout), with a verdict on who holds up whom and the line at which each rank is. The
// last line says which ranks failed because of which. A run that leaves goroutines, descriptors, memory of emulated
// GPUs or a communicator of Split, Grow or Shrink behind fails too (Leaks).
//
// With the option Faults a rank may Kill or Stall itself, and make its links late, slow, silent or wrong (Rank.Link,
// Rank.Partition), to see that a program recovers. Rank.Meet has all ranks wait for each other beside the communicator.
// Ranks that are processes can be killed and stalled without the option.
//
// Every run has a seed. A failure prints it, and RINGOTEST_SEED=seed in the environment repeats it.
//
// The trap: the same function runs as goroutines and as processes, and shares memory with other ranks only as
// goroutines. A rank tells the test and the other ranks something by the communicator, or by failing.
package ringotest
