package command

import (
	"context"
	"io"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/internal/cli"
)

// benchHelp is what "ringo help bench all" prints.
const benchHelp = `usage: ringo bench COLLECTIVE... [flags]

Measures collectives between processes of this machine, on host or GPU memory,
and verifies every element. Flags and columns are those of nccl-tests.

Examples
  ringo bench allreduce -np 4
  ringo bench all -np 3 -d all -o all -b 0 -e 64K -f 16
  ringo bench allreduce -np 2 -b 8 -e 64M -f 8 -peer openmpi,mpich,gloo
  ringo bench alltoall -np 2 -g 4 -transport tcp -plot alltoall.svg
  ringo bench allreduce -np 4 -b 1M -e 1M -trace steps.json
  mpirun -np 4 ringo bench allreduce -np 0
  ringo bench all -g 4 -device emu -b 0 -e 4K -f 16
  ringo bench allreduce -device cuda -d bfloat16 -e 1G -G 20 -peer nccl
  ringo bench allreduce -device cuda -d bfloat16,float16 -error -peer nccl
  ringo bench allreduce -device cuda -b 4M -e 256M -beside -peer nccl
  ringo bench allreduce -device cuda -b 4K -e 4K -m 1000 -peer nccl

  COLLECTIVE     allreduce allgather reducescatter broadcast reduce alltoall
                 gather scatter sendrecv, or all

Ranks
  -np N          processes to start (default 4, on GPUs 1); 0: be one rank of a
                 job that "ringo run", mpirun, torchrun or srun has started
  -g N           ranks of each process, as goroutines (default 1); on GPUs one
                 each (default all there are, 4 emulated)
  -hosts H       have the processes think that they are on H hosts, in equal
                 blocks: what goes between them takes the network

Sizes, in bytes of the larger buffer of a rank; K, M, G are powers of 1024
  -b SIZE        first size (default 8; -b 0 works too)
  -e SIZE        last size (default 16M)
  -f FACTOR      each size is FACTOR times the one before (default 4)
  -i SIZE        instead of -f: each size is SIZE more than the one before

What
  -d TYPE,...    int8 uint8 int32 uint32 int64 uint64 float16 bfloat16 float32
                 float64 float8e4m3 float8e5m2, or all (default float32)
  -o OP,...      sum prod max min avg bitand bitor bitxor premulsum(NUMBER), or
                 all (default sum)
  -r ROOT        root of broadcast, reduce, gather, scatter; -1: every rank in
                 turn (default 0)
  -row SIZE      allreduce, reducescatter: a residual, an RMSNorm and a weight
                 follow, of rows of SIZE bytes, in the same call (default: none)

How
  -n N           iterations (default 0: as many as take 20 ms, at least 5)
  -w N           warm-ups (default 5)
  -m N           operations that each iteration makes in one group (default 1),
                 in memory of their own as far as 64 MiB go; times are of one
  -c 0|1         verify every element (default 1)
  -error         compare sums of random floats with the exact ones: greatest and
                 root-mean-square error, in units in the last place
  -deterministic reductions in order of rank: bits that depend on nothing else
  -device D      host (or auto), cuda, or emu: GPUs that are emulated; what they
                 compute is right, what they take means nothing
  -G N           GPUs: replay a graph of N operations
  -R 0|1         GPUs: register the buffers, so that ranks read and write each
                 other's where they can (default 0); with peer nccl there too
  -beside        GPUs: -n collectives (default 20) on one stream, and beside
                 them, on another, kernels that fill all multiprocessors.
                 Columns: collectives alone, computing alone, both, the ideal
                 (the longer of the two), their sum, both in units of the
                 ideal, how much slower computing and collectives were. Peer
                 nccl has the same computing. -reps rounds in turn (default
                 9), medians count
  -beside-product D
                 the computing is products of matrices that take so long, up to
                 10ms, by cuBLASLt (-cublas FILE) where there is one
  -beside-time D
                 of computing (default: as long as the collectives take)
  -unchecked     emu: faster, without looking for races
  -transport T   auto, inproc (all ranks in one process), shm, socket (tcp or
                 unix to insist); on GPUs p2p, shm (queues in host memory), or
                 socket, tcp, unix (host memory and a bridge)
  -algo A        auto, ring, tree, oneshot, twoshot, doubling, halving, ...
  -timeout D     of one operation (default 2m)

Others
  -peer P,...    openmpi, mpich, gloo; on GPUs nccl: measure these libraries on
                 the same sizes, in turn with ours, and add columns: their time,
                 and how many times ours it is
  -nccl FILE     the library of peer nccl (default libnccl.so.2)
  -reps N        repetitions with peers; medians count (default 3)
  -peer-timeout D
                 of one run of a peer (default 2m)
  -json FILE     save a report
  -plot FILE     draw time and bandwidth: .svg or .html
  -trace FILE    save what each rank did at each step of the last calls of each
                 measurement, and for whom it waited, for ui.perfetto.dev; says
                 which ranks came last. Times are some 0.1 us a step longer
  -from A.json,B.json -plot FILE
                 draw reports saved before

Exit status: 0 if every element was right and no rank failed, 2 for a mistake in
the command line, 1 otherwise.
`

// benchBrief is what "ringo bench -h" prints.
const benchBrief = `usage: ringo bench COLLECTIVE... [flags]

Measures collectives between processes of this machine, on host or GPU memory,
and verifies every element. Flags and columns are those of nccl-tests.

Examples
  ringo bench allreduce -np 4
  ringo bench allreduce -np 2 -b 8 -e 64M -f 8 -peer openmpi,mpich,gloo
  ringo bench all -g 4 -device emu -b 0 -e 4K -f 16
  ringo bench allreduce -device cuda -d bfloat16 -e 1G -G 20 -peer nccl
  mpirun -np 4 ringo bench allreduce -np 0

  COLLECTIVE     allreduce allgather reducescatter broadcast reduce alltoall
                 gather scatter sendrecv, or all
  -np N          processes to start (default 4, on GPUs 1); 0: be one rank of a
                 job that a launcher has started
  -g N           ranks of each process (default 1); on GPUs one each
  -hosts H       have the processes think that they are on H hosts
  -b SIZE        first size, of the larger buffer of a rank (default 8)
  -e SIZE        last size (default 16M)
  -f FACTOR      each size is FACTOR times the one before (default 4)
  -d TYPE,...    element types, or all (default float32)
  -o OP,...      sum prod max min avg ..., or all (default sum)
  -n N, -w N     iterations (default: as many as take 20 ms), warm-ups (5)
  -device D      host (or auto), cuda, or emu: GPUs that are emulated
  -transport T   auto, inproc, shm, socket (tcp or unix to insist)
  -algo A        auto, ring, tree, oneshot, twoshot, doubling, halving, ...
  -peer P,...    openmpi, mpich, gloo; on GPUs nccl: measure these beside ours
  -json FILE     save a report
  -plot FILE     draw time and bandwidth: .svg or .html
  -trace FILE    save what each rank did at each step, for ui.perfetto.dev

Exit status: 0 if every element was right and no rank failed.
"ringo help bench all" explains every flag.
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
