// Package check is the command "ringo check". It reports whether every GPU, link and host of a
// cluster is well, and names those that are not. It is for operators and node agents. Command
// carries out a command line. The package is part of the command ringo; nothing here is promised to other modules.
//
// A check is a list of stages that all ranks of a job carry out in step, causes before
// effects: a wrong clock or interface is found before the slow link that it causes.
// Each rank measures; rank 0 gathers the measurements and judges them, mostly by comparing ranks and
// hosts of the job. If rank 0 has not come, "rank 0" means the lowest rank that has: see job.First.
//
//	j, err := join(ctx, joinOptions{})    // or alone, local
//	r, err := run(ctx, j, config{})       // on every rank; the report is rank 0's
//	r.Print(os.Stdout)
//
// # The contract of a stage
//
// A stage is a value with a name, time limits, and two functions:
//
//   - Measure runs on every rank, with a context that ends at the stage's limit, and returns this rank's
//     measurements. Measure must end when the context does; otherwise it is left behind, a finding names
//     the rank as stuck, and the job goes on. Measure may talk to the other ranks: job.Gather, job.Leader.
//     A fault that it finds is a measurement too ("error" with a Text). An error that it returns means that
//     this rank could not measure; one made by skip means that there is nothing to measure.
//   - Judge runs on rank 0 alone and is a pure function of the report so far, so a test can
//     give it measurements by hand. It returns findings: a severity, a subject, and one sentence
//     with the cause and the remedy. Compare with the others by outliers.
//
// A rank that dies, or whose process is stopped, does not come to a Gather. It is lost from then
// on: a finding names it, and the others go on without it. Gather gives nil for the lost.
//
// The trap: all ranks must have the same config, since it decides which stages they carry out.
package check
