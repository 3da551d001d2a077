package programs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
)

// Programs that failed once. Faults with a B are those of the careful reading that began this
// package; the others were found by TestPrograms.
var regressions = []struct{ fault, text string }{
	{"B2: a graph beside a call on another stream", `
program seed=5 ranks=3 bytes=4096 each=true ring=0 args=0
open
begin g=1 on=blocking
group
	call on=blocking kind=AllGatherv type=int32 counts=1,1,1
end g=1 on=blocking
call kind=AlltoAllv type=int32 counts=1,1,1/1,1,1/1,1,1 out=2
launch g=1 on=own2
check`},
	{"B2: two graphs in flight, each with a fork", `
program seed=6 ranks=2 bytes=4096 each=false ring=0 args=0
open
begin g=1
call kind=AllReduce type=int32 n=300 in=0 out=1
fork g=1 to=own2
call on=own2 kind=AllReduce type=int32 n=300 in=1 out=2
call kind=AllReduce type=int32 op=max n=200 in=2 out=3
join g=1 to=own2
end g=1
begin g=2 on=blocking
call on=blocking kind=AllGather type=int32 n=100 in=3 out=0
end g=2 on=blocking
launch g=1
launch g=2 on=own2
launch g=1 on=legacy
call on=thread kind=AllReduce type=int32 n=300 in=0 out=0
launch g=2
check`},
	{"B3: one rank alone throws a capture away", `
program seed=4 ranks=2 bytes=4096 each=false ring=0 args=0
open
begin g=2 on=own2 ranks=1
call on=own2 kind=AllGather type=int32 n=1
end g=2 on=own2 discard=true
call kind=Reduce type=int32
check`},
	{"B5: a graph is launched after Close, beside another communicator", `
program seed=7 ranks=2 bytes=4096 each=false ring=0 args=0
open
open c=1
begin g=1
call kind=AllReduce type=int32 n=500 out=1
call c=1 kind=AllReduce type=int32 n=500 out=1
call kind=AlltoAllv type=int32 counts=1,2/3,4 in=1 out=1
end g=1
launch g=1
close
launch g=1
launch g=1 on=own2
check c=1`},
	{"B5: a graph is launched after Abort", `
program seed=8 ranks=3 bytes=4096 each=true ring=0 args=0
open
begin g=1
call kind=AllReduce type=int32 n=500 out=1
end g=1
launch g=1
abort rank=1
launch g=1
launch g=1 on=own2
close
launch g=1`},
	{"B7: a stream is made anew while its work goes on", `
program seed=92 ranks=2 bytes=4096 each=false ring=0 args=0
open
call kind=AllReduce type=int32 n=900
renew
call kind=AllReduce type=int32 n=900 in=0 out=1
renew
call kind=AllReduce type=int32 n=900 in=1 out=2
check`},
	{"B8: a group whose calls each have a kernel to load", `
program seed=3 ranks=2 bytes=4096 each=false ring=0 args=0
open
group
	call on=blocking kind=AllReduce type=int32 n=9
	call on=blocking kind=AllReduce type=int32 op=max n=9
	call on=blocking kind=AllReduce type=int64 op=min n=9
check`},
	{"B9: a communicator is closed before its graph, which holds scratch, is destroyed", `
program seed=2145 ranks=1 bytes=4096 each=true ring=1 args=1
open
begin g=3
call kind=AlltoAll type=int32 n=19 in=2 out=2
end g=3
launch g=3
close
destroy g=3`},
	{"B14: tables of calls on several streams, through the smallest ring", `
program seed=9 ranks=3 bytes=4096 each=true ring=1 args=1
open
call kind=AllGatherv type=int32 counts=9,1,30 out=1
call on=own2 kind=AlltoAllv type=int32 counts=1,2,3/4,5,6/7,8,9 in=1 out=2
call on=blocking kind=AllGatherv type=int32 counts=3,40,5 in=2 out=3
group
	message on=own2 type=int32 n=10 in=3 out=0 for=1
	message on=own2 type=int32 n=10 in=3 out=0 from=1 for=2
	message on=own2 type=int32 n=10 in=3 out=0 from=2
begin g=1
call kind=AlltoAllv type=int32 counts=1,2,3/4,5,6/7,8,9 in=0 out=1
end g=1
launch g=1 on=thread
launch g=1 on=own2
check`},
	{"one thread's group in which not all ranks have messages between collectives with kernels to load", `
program seed=5307 ranks=3 bytes=4096 each=false ring=0 args=0
open
group
	message on=blocking type=int32 from=2 for=1
	call on=blocking kind=AllReduce type=int32
	call on=blocking kind=AllReduce type=uint8 in=1 out=2
	call on=blocking kind=Scatter type=int64 n=4 root=1 in=3 out=1 inat=3 outat=1
check`},
	{"B14: one thread drives all GPUs, through the smallest ring", `
program seed=8034 ranks=3 bytes=4096 each=false ring=1 args=1
open algo=steps
call kind=Gather type=int32
call kind=AlltoAllv type=uint32 counts=36,171,74/98,250,55/310,90,56 in=2 out=3
check`},
	{"one thread's group of messages that the smallest ring does not hold", `
program seed=2048 ranks=2 bytes=4096 each=false ring=1 args=1
open
group
	message type=uint32 n=148 out=1 from=1
	message type=float16 n=39 in=3 out=3 from=1
	message type=uint32 n=10 in=0 out=2 for=1
	message type=uint32 n=10 in=1 out=1 outat=200 from=1
check`},
	{"one thread's group of two communicators, where a rank's first calls are of the second", `
program seed=12244 ranks=2 bytes=4096 each=false ring=0 args=0
open
split c=1 members=0,1
group
	message on=own2 type=int32 from=1 for=1 out=1
	message c=1 on=own2 type=int32 from=1
	call on=own2 kind=AllReduce type=int32
	call c=1 on=own2 kind=AlltoAllv type=int32 counts=10,377/17,286 in=3 out=3
check`},
	{"Close while another rank goes on with another communicator", `
program seed=35 ranks=2 bytes=4096 each=true ring=0 args=0
open
open c=2
close c=2
call kind=AllGather type=int32
check`},
	{"a group of one thread loads a kernel while one that it has queued waits for a later call", `
program seed=136 ranks=2 bytes=4096 each=false ring=0 args=0
open
split c=5 members=1,0
group
	call c=5 kind=AllReduce type=int32
	call kind=AllReduce type=float64 fill=1
check`},
	{"what a closed communicator has is given back while kernels of another one wait", `
program seed=20 ranks=2 bytes=4096 each=false ring=0 args=0
open
open c=1
open c=2
call c=1 kind=AllReduce type=int32 n=10
call c=2 kind=AllReduce type=int32 n=10
close c=1
call kind=AllGather type=int32 n=40
call kind=AllGather type=int32 n=40
close c=2
call kind=AllGather type=int32 n=40
call kind=AllGather type=int32 n=40
call kind=AllReduce type=int32 n=40
check`},
	{"an executable graph is updated", `
program seed=10 ranks=2 bytes=4096 each=false ring=0 args=0
open
begin g=1
call kind=AllReduce type=int32 n=40 out=1
end g=1
begin g=2
call kind=AllReduce type=int32 n=40 in=1 out=2
end g=2
launch g=1
update g=1 of=2
launch g=1 on=own2
check`},
	{"a process closes its GPUs while kernels of others write to its queues", `
program seed=20225 ranks=4 bytes=16384 kills=true apart=true slot=256
group
	message type=uint8 n=5000 out=1 for=3
	message type=uint8 n=1 inat=5000 out=1 outat=5000 for=3
	message type=uint8 n=5000 inat=5001 out=1 outat=5001 from=2 for=2
	message type=uint8 n=5000 inat=10001 out=1 outat=10001 for=2
	message type=uint8 n=8 inat=15001 out=1 outat=15001 from=2 for=2
	message type=uint8 n=1 inat=15009 out=1 outat=15009 from=1 for=1
leave rank=1 how=Abort
call kind=Gather type=int32 n=1 out=1 by=context`},
}

func TestRegressions(t *testing.T) {
	c := new(crew)
	defer c.end()
	for _, r := range regressions {
		t.Run(r.fault, func(t *testing.T) {
			p, err := Parse(r.text)
			require.NoError(t, err)
			if gputest.OnGPU() && p.Kills {
				t.Skip("its GPUs are emulated")
			} else if gputest.OnGPU() {
				gputest.Driver(t, gputest.Devices(p.Ranks)) // skips the test where there are fewer
			}
			_, err = c.try(p)
			require.NoError(t, err)
		})
	}
}
