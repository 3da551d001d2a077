package programs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// everyWay are the ways to carry out an all-reduce on GPU memory.
var everyWay = []struct{ name, open string }{
	{"direct", "open"},
	{"notes", "open algo=ring"},
	{"slots", "open algo=ring slot=1024"},
	{"rank order", "open algo=steps ordered=true"},
	{"window", "open algo=window\nregister\nregister in=2"},
	{"copies", "open algo=copies\nregister\nregister in=2"},
	{"host memory", "open path=host"},
	{"bridge", "open path=bridge"},
}

// scenes are programs for every way.
var scenes = []struct{ name, header, steps string }{
	{"graphs and calls follow each other, whichever streams they are on", "ranks=2 bytes=16384 each=true", `
begin g=1
call kind=AllReduce type=uint8 n=9000
call kind=AllGather type=uint8 n=3000 out=2
end g=1
begin g=2
begin g=3 on=own2
call kind=AllReduce type=uint8 n=9000
call on=own2 kind=AllReduce type=uint8 n=9000
call kind=AllReduce type=uint8 n=9000
end g=2
end g=3 on=own2
launch g=1
launch g=2 on=own2
call on=blocking kind=AllReduce type=uint8 n=9000
launch g=3
launch g=1 on=own2
call kind=AllReduce type=uint8 n=9000
check
launch g=1
launch g=1 on=own2
call on=blocking kind=AllReduce type=uint8 n=9000
check`},
	{"a capture goes over several streams", "ranks=2 bytes=16384", `
begin g=1
fork g=1 to=own2
call kind=AllReduce type=uint8 n=3000
call on=own2 kind=AllReduce type=uint8 n=3000
call on=own2 kind=AllReduce type=uint8 n=3000
call kind=AllReduce type=uint8 n=3000
join g=1 to=own2
end g=1
launch g=1 on=own2
call kind=AllReduce type=uint8 n=3000
destroy g=1
call on=own2 kind=AllReduce type=uint8 n=3000
check`},
	{"calls that are captured again give the same graph", "ranks=2 bytes=16384", `
begin g=1
call kind=AllReduce type=uint8 n=3000
call kind=AllReduce type=uint8 n=3000
end g=1
call on=legacy kind=AllReduce type=uint8 n=3000
begin g=2
call kind=AllReduce type=uint8 n=3000
call kind=AllReduce type=uint8 n=3000
end g=2
update g=1 of=2 how=alike
launch g=1
call on=legacy kind=AllReduce type=uint8 n=3000
launch g=1
destroy g=1
check`},
	{"Close waits for graphs that were launched before it", "ranks=2 bytes=16384 each=true", `
begin g=1
call kind=AllReduce type=uint8 n=3000
end g=1
launch g=1
launch g=1
close
check
destroy g=1`},
}

// order is the steps of programs on each kind of stream: each input is written on the stream just before its call.
const order = `
call on=STREAM kind=AllReduce type=uint8 n=3000 fill=1
call on=STREAM kind=AllReduce type=uint8 n=3000 fill=2 out=1
call on=STREAM kind=AllReduce type=uint8 n=3000 fill=3 out=2
group
	call on=STREAM kind=AllReduce type=uint8 n=3000 fill=4 out=3
check
call on=STREAM kind=AllReduce type=uint8 n=3000
call on=own kind=AllReduce type=uint8 n=3000
call on=STREAM kind=AllReduce type=uint8 n=3000
check`

// tables is calls with tables and graphs of such calls, which run late, often or never, beside groups of messages.
// Close waits for the calls whose tables are in the ring.
const tables = `
open algo=steps
begin g=1
call kind=AlltoAllv type=uint8 counts=1,2,3/1,2,3/1,2,3
end g=1
begin g=2 on=own2
call on=own2 kind=AlltoAllv type=uint8 counts=11,12,13/11,12,13/11,12,13 in=1 out=1
end g=2 on=own2
begin g=3
call kind=AlltoAllv type=uint8 counts=90,91,92/90,91,92/90,91,92
end g=3
call kind=AlltoAllv type=uint8 counts=31,32,33/31,32,33/31,32,33 in=2 out=3
call on=own2 kind=AlltoAllv type=uint8 counts=32,33,34/32,33,34/32,33,34 in=3 out=2
group
	message on=own2 type=uint8 n=1 in=2 out=1 outat=1 for=1
	message on=own2 type=uint8 n=1 in=2 out=1 outat=2 for=2
	message on=own2 type=uint8 n=1 in=2 out=1 outat=3 from=1
	message on=own2 type=uint8 n=1 in=2 out=1 outat=4 from=1 for=2
	message on=own2 type=uint8 n=1 in=2 out=1 outat=5 from=2
	message on=own2 type=uint8 n=1 in=2 out=1 outat=6 from=2 for=1
	message on=own2 type=uint8 n=1 inat=1 in=2 out=1 outat=7 for=1
	message on=own2 type=uint8 n=1 inat=1 in=2 out=1 outat=8 from=1 for=2
	message on=own2 type=uint8 n=1 inat=1 in=2 out=1 outat=9 from=2
call kind=AlltoAllv type=uint8 counts=38,39,40/38,39,40/38,39,40 in=2 out=3
launch g=1 on=own2
call on=own2 kind=AlltoAllv type=uint8 counts=39,40,41/39,40,41/39,40,41 in=3 out=2
launch g=2
launch g=1 on=own2
call kind=AlltoAllv type=uint8 counts=40,41,42/40,41,42/40,41,42 in=2 out=3 times=9
close
check`

// TestScenes has programs of one thing each, for every way, kind of stream or mode of a capture.
func TestScenes(t *testing.T) {
	tier.Long(t)
	c := new(crew)
	defer c.end()
	try := func(name, header, steps string) {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(fmt.Sprintf("program seed=8 %s\n%s", header, strings.TrimSpace(steps)))
			require.NoError(t, err)
			require.Equal(t, p.String(), Repair(p).String(), "a step makes no sense")
			if gputest.OnGPU() {
				gputest.Driver(t, gputest.Devices(p.Ranks)) // skips the test where there are fewer
			}
			_, err = c.try(p)
			require.NoError(t, err)
		})
	}
	for i, s := range scenes {
		for k, w := range everyWay {
			if tier.Full() || (i+k)%3 == 0 {
				try(s.name+"/"+w.name, s.header, w.open+s.steps)
			}
		}
	}
	for i, stream := range streamNames {
		for k, open := range []string{"open", "open algo=ring"} {
			for _, each := range tier.Some(2, []bool{i%2 == 0, i%2 == 1}) {
				if tier.Full() || (i+k)%2 == 0 {
					try(fmt.Sprintf("stream %s, %s, a goroutine each %v", stream, open, each),
						fmt.Sprintf("ranks=3 bytes=4096 each=%v", each), open+strings.ReplaceAll(order, "STREAM", stream))
				}
			}
		}
	}
	for _, ring := range tier.Some(3, []string{"ring=1 args=1", "ring=1", ""}) {
		try("tables, "+ring, "ranks=3 bytes=4096 each=true "+ring, tables)
	}
	for i, first := range []string{
		"open algo=steps\nbegin g=1 MODE\ncall kind=AlltoAll type=int32 n=50",
		"open\nbegin g=1 MODE\ncall kind=AlltoAll type=int32 n=50",
		"open\nbegin g=1 MODE\ncall kind=AllReduce type=int32 op=premulsum n=100",
		"open algo=steps ordered=true\nbegin g=1 MODE\ncall kind=AllReduce type=int32 n=100",
	} {
		for k, mode := range []string{"mode=global", "", "mode=relaxed"} {
			if tier.Full() || i%3 == k {
				try(fmt.Sprintf("the first call %d is in a capture, %s", i, mode), "ranks=2 bytes=4096",
					strings.Replace(first, "MODE", mode, 1)+"\nend g=1\nlaunch g=1\ncheck")
			}
		}
	}
}
