package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ringo-go/ringo/gpu/emu/ptxcheck"
	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/given"
)

// ptxHelp is what "ringo help ptx all" prints.
const ptxHelp = `usage: ringo ptx check FILE [flags]

Runs kernels of a PTX file on emulated GPUs under many seeds, each another order
of threads and stores, and reports what is wrong: races within a block, across
blocks and across GPUs, bad addresses, reads of what nothing wrote, deadlocks,
barriers that not all threads reach, wrong results. It needs no GPU. A race is
found even if it did no harm: it suffices that nothing orders the two accesses.
|Each finding comes with the shortest schedule that was found for it. Compile
|with "nvcc -ptx -lineinfo" or "clang++ -S -gline-tables-only" to have it name
|lines of the source.
|
|What PTX does not promise is a race, also where hardware happens to keep it. A
|fence, a release and an acquire need a scope that holds both threads: between
|two GPUs .sys, which is __threadfence_system and not __threadfence.

Examples
  ringo ptx check add.ptx -block 64 -buf 'x=f32[64]:i' -buf 'y=f32[64]:1' \
    -arg x -arg y -arg 64 -want x=i+1
  ringo ptx check ring.ptx -g 4 -buf 'x=f32[256]:rank' -buf 'flag=u32[1]:0' \
    -arg x -arg 'x@((rank+1)%gpus)' -arg 'flag@((rank+1)%gpus)'

|What to run
{g buf kernel grid block}
|{shared cooperative}
{arg}
|{on}
{want}

VALUE and CONTENTS are expressions of numbers, + - * / % and parentheses, with
  rank, gpus       the number of the GPU, and how many there are
  NAME, NAME@GPU   the address of a buffer on this GPU, or on another
|  pick(A,B,...)    the value with the number of the GPU
|  TYPE:VALUE       a value of another type than declared
|  {V,V,...}        a struct; numbers in it need a TYPE, NAME@* is the addresses
|                   of a buffer on all GPUs
|Contents are such expressions too, with i, the number of the element; several
|with commas between them are repeated. Types are u8 to u64, s8 to s64, f16,
|bf16, e4m3, e5m2, f32, f64, and ptr, an address.
|
|How
{seeds}
|{seed link sms steps time}
{json}

Exit status: 0 if nothing was found under all seeds, 2 for a mistake in the
command line, 1 otherwise.
`

func runPTX(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c ptxcheck.Case
	fs := flags("ptx")
	launchFlags(fs, &c)
	c.GPUs, c.Seeds, c.Link, c.SMs = 1, 100, "nvlink", 8
	limit, asJSON := 5*time.Minute, fs.Bool("json", false, "print a report as JSON, version 1")
	cli.Int(fs, &c.GPUs, 1, 16, "1 to 16 GPUs", "g `N` GPUs (default 1)")
	cli.Int(fs, &c.Seeds, 1, mostSeeds, "1 to a million seeds", "seeds `N` how many seeds (default 100)")
	fs.Uint64Var(&c.First, "seed", 0, "`N` the first one (default 0); -seed N -seeds 1 runs one again")
	cli.Word(fs, &c.Link, "link", []string{"nvlink", "pcie", "none"}, "link `LINK` what joins the GPUs: "+
		"nvlink, pcie, which tears lines of 128 bytes, or none (default nvlink)")
	cli.Int(fs, &c.SMs, 1, 1024, "1 to 1024 multiprocessors", "sms `N` multiprocessors of a GPU (default 8): "+
		"with few not all blocks are resident at once")
	fs.Uint64Var(&c.Instructions, "steps", 0, "`N` instructions of all threads after which a run is said to "+
		"have no end (default 20 million, or more for many threads)")
	cli.Duration(fs, &limit, cli.Moment, "time `D` give up after this time (default 5m)")
	names, err := cli.Parse(fs, args)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return cli.Usagef("what? write: ringo ptx check FILE")
	case names[0] != "check":
		return cli.Unknown("subcommand", names[0], []string{"check"})
	case len(names) != 2:
		return cli.Usagef("%d files: give one", len(names)-1)
	}
	if c.Text, err = given.Read(names[1]); err != nil {
		return cli.Usagef("%v", err)
	}
	c.Name = filepath.Base(names[1])
	if c.Launches == nil {
		c.Launches = []ptxcheck.Launch{newLaunch("")}
	}
	bar := cli.NewProgress(stderr)
	c.Progress = func(n int) { bar.Show(fmt.Sprintf("%d seeds", c.Seeds), float64(n)/float64(c.Seeds)) }
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("ran out of time after %v (-time)", limit))
	defer cancel()
	r, err := ptxcheck.Run(ctx, c)
	bar.Clear()
	if wrong := (*ptxcheck.Error)(nil); errors.As(err, &wrong) {
		return cli.Usagef("%v", err)
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(r))
	} else {
		err = errors.Join(err, r.Print(stdout))
	}
	switch n := len(r.Findings); {
	case err != nil:
		return fmt.Errorf("%d of %d seeds: %w", r.Ran, r.Seeds, err)
	case n == 1:
		return errors.New("1 finding")
	case n > 1:
		return fmt.Errorf("%d findings", n)
	}
	return nil
}

func newLaunch(kernel string) ptxcheck.Launch {
	return ptxcheck.Launch{Kernel: kernel, Block: [3]int{32, 1, 1}}
}

// Bounds of flags: dynamic shared memory of a block, which is that of the largest GPU, an extent of a grid
// that is emulated, and seeds.
const (
	mostShared = 228 << 10
	mostExtent = 1 << 16
	mostSeeds  = 1_000_000
)

// launchFlags defines the flags of launches. Their order counts: each is for the last -kernel before it.
func launchFlags(fs *flag.FlagSet, c *ptxcheck.Case) {
	open := func() *ptxcheck.Launch { // the launch that the next flag is for
		if c.Launches == nil {
			c.Launches = append(c.Launches, newLaunch(""))
		}
		return &c.Launches[len(c.Launches)-1]
	}
	const kernel = "`K` a kernel, not needed if FILE has one; the flags -grid, -block, -shared, -cooperative, -arg " +
		"and -on that follow are its launch's. Repeat it for launches one after the other"
	fs.Func("kernel", kernel, func(s string) error {
		if len(c.Launches) == 1 && c.Launches[0].Kernel == "" { // flags before the first -kernel are for it
			c.Launches[0].Kernel = s
			return nil
		}
		c.Launches = append(c.Launches, newLaunch(s))
		return nil
	})
	fs.Func("grid", "`X,Y,Z` blocks (default 1)",
		func(s string) error { return parseExtents(s, &open().Grid) })
	fs.Func("block", "`X,Y,Z` threads of a block (default 32)",
		func(s string) error { return parseExtents(s, &open().Block) })
	fs.Func("shared", "`BYTES` dynamic shared memory of a block (default 0)", func(s string) (err error) {
		if open().Shared, err = strconv.Atoi(s); err != nil || open().Shared < 0 || open().Shared > mostShared {
			return fmt.Errorf("want 0 to %d bytes", mostShared)
		}
		return nil
	})
	fs.BoolFunc("cooperative", "all blocks are resident at once, or it is an error", func(s string) (err error) {
		open().Cooperative, err = strconv.ParseBool(s)
		return err
	})
	fs.Func("arg", "`VALUE` the next argument, by the type that the kernel declares", func(s string) error {
		l := open()
		l.Args = append(l.Args, s)
		return nil
	})
	fs.Func("on", "`GPU,...` only these GPUs launch it (default all)", func(s string) error {
		l := open()
		for _, text := range strings.Split(s, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n >= mostGPUs {
				return fmt.Errorf("want numbers of GPUs, such as 0,1")
			}
			l.On = append(l.On, n)
		}
		return nil
	})
	fs.Func("buf", "`NAME=TYPE[COUNT]:CONTENTS` memory of this name on every GPU; without :CONTENTS nothing is "+
		"written to it. Repeat it for more", add(&c.Buffers))
	fs.Func("want", "`NAME=CONTENTS` what a buffer has to hold in the end; or NAME@GPU=...", add(&c.Wants))
}

// add returns a function that adds texts to a list.
func add(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}

// parseExtents reads up to three extents: 2 or 2,1,1 or 2x1x1.
func parseExtents(s string, to *[3]int) error {
	words := strings.Split(strings.ReplaceAll(s, "x", ","), ",")
	if len(words) > 3 {
		return fmt.Errorf("want up to three numbers, such as 4 or 2,2,1")
	}
	*to = [3]int{1, 1, 1}
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > mostExtent {
			return fmt.Errorf("want up to three numbers, such as 4 or 2,2,1")
		}
		to[i] = n
	}
	return nil
}
