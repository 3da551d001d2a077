package command

import (
	"context"
	"io"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

// benchHelp is what "ringo bench -h" prints.
const benchHelp = `usage: ringo bench COLLECTIVE... [flags]

Measures collectives between processes of this machine, on host or GPU memory,
and verifies every element. Flags and columns are those of nccl-tests.

Examples
  ringo bench allreduce -np 4
|  ringo bench all -np 3 -d all -o all -b 0 -e 64K -f 16
  ringo bench allreduce -np 2 -b 8 -e 64M -f 8 -peer openmpi,mpich,gloo
|  ringo bench alltoall -np 2 -g 4 -transport tcp -plot alltoall.svg
|  ringo bench allreduce -np 4 -b 1M -e 1M -trace steps.json
  mpirun -np 4 ringo bench allreduce -np 0
  ringo bench all -g 4 -device emu -b 0 -e 4K -f 16
  ringo bench allreduce -device cuda -d bfloat16 -e 1G -G 20 -peer nccl
|  ringo bench allreduce -device cuda -d bfloat16,float16 -error -peer nccl
|  ringo bench allreduce -device cuda -b 4M -e 256M -beside -peer nccl
|  ringo bench allreduce -device cuda -b 4K -e 4K -m 1000 -peer nccl

  COLLECTIVE     allreduce allgather reducescatter broadcast reduce alltoall
                 gather scatter sendrecv, or all
|
|Ranks
{np g hosts}
|
|Sizes, in bytes of the larger buffer of a rank; K, M, G are powers of 1024
{b e f}
|{i}
|
|What
{d o}
|{r row}
|
|How
{n w}
|{m c error deterministic}
{device}
|{G R beside beside-product cublas beside-time unchecked}
{transport algo}
|{timeout}
|
|Others
{peer}
|{nccl reps peer-timeout}
{json plot trace}
|{from}

Exit status: 0 if every element was right and no rank failed, 2 for a mistake in
the command line, 1 otherwise.
`

func runBench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg := bench.NewConfig()
	fs := flags("bench")
	cfg.Register(fs)
	names, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	cfg.Args, cfg.Stdout, cfg.Stderr = args, stdout, stderr
	if err := cfg.Complete(fs, names); err != nil {
		return err
	}
	return bench.Run(ctx, cfg)
}
