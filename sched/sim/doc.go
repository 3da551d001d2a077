// Package sim times a collective on paper, for comparing algorithms on machines that one
// does not have. It carries out the steps of a sched.Schedule on ranks that have no data
// but clocks, under a Model of the links between them, for ten ranks or a million.
// Estimate does the same quickly; a plan chooses algorithms by it where nothing was
// measured.
//
// The trap: a time is as good as the Model. The presets are round figures, and
// inside a node those for networks mean shared memory on CPUs, but for NVLink.
//
// A message of m bytes from one rank to another costs, when nothing else is in
// the way,
//
//	o + m/B + L + o
//
// where o is the Overhead of each end, B the Bandwidth and L the Latency of the
// link. With o = 0 that is the α-β model of Hockney ("The communication
// challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20,
// 1994) with α = L and β = 1/B; with o it is LogGP of Alexandrov, Ionescu,
// Schauser and Scheiman ("LogGP: incorporating long messages into the LogP
// model", SPAA 1995) with G = 1/B and no gap g beyond o. Combining costs γ a
// byte, as in Thakur, Rabenseifner and Gropp ("Optimization of collective
// communication operations in MPICH", IJHPCA 19, 2005), whose closed forms the
// tests of this package compare with.
//
// Beyond these formulas a Model knows what an engine does:
//
//   - A chunk is cut into pieces of at most half a queue, and the schedule is
//     carried out piece by piece (a round each). A piece moves in slices of one
//     slot, so that a step that receives and sends passes on slice after slice.
//   - A queue has a depth: a rank that is ahead waits for slots to come back.
//   - A rank's port carries one message at a time in each direction, and so does the
//     network card or memory that ranks of a node share. Messages are served in order of
//     arrival.
//
// What it leaves out: routing and contention between nodes, jitter, and that
// the slices of a message may be delayed unevenly; a message is known by the
// times of its first and its last slice.
//
// The same run gives the same bits on every processor, for ranks of different ones choose
// algorithms by it: products that are added to are in float64(…), so that they are rounded and
// no processor fuses the two.
package sim
