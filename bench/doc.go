// Package bench measures collectives between processes or goroutines, on host or
// GPU memory, verifies every element of every result, and prints, saves and draws
// the measurements. The command "ringo bench" runs it; columns and flags are those of
// nccl-tests, and other libraries can be measured beside Ringo on the same sizes.
//
// A Config says what to measure, Run does it:
//
//	cfg := bench.NewConfig()
//	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
//	cfg.Register(fs)
//	fs.Parse([]string{"-np", "2", "-e", "1M"})
//	if err := cfg.Complete(fs, []string{"allreduce"}); err != nil { … }
//	err := bench.Run(ctx, cfg)
//
// The trap: with several processes Run starts this program again, with the
// arguments of Config.Command and Config.Args, so a program that calls it must
// come to Run by that command line too.
package bench
