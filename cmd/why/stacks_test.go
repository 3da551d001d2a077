package why

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/hang"
	"github.com/ringo-go/ringo/cmd/why/stacks"
)

const spy = `Process 4711: /usr/bin/python -u train.py --config a.yaml
Python v3.12.4 (/usr/bin/python3.12)

Thread 4711 (idle): "MainThread"
    select (selectors.py:415)
    _poll (multiprocessing/connection.py:1136)
    get (multiprocessing/queues.py:113)
    __next__ (torch/utils/data/dataloader.py:701)
    batches (/home/u/train.py:31)
    _fn (torch/_dynamo/eval_frame.py:632)
    <module> (train.py:99)
Thread 4800 (active): "pt_autograd_0"
    wrapper (helper.py:8)
Process 4712: /usr/bin/python -u train.py

Thread 0x7F12 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2938)
    step (train.py:40)
`

const gdb = `[New LWP 4820]
Attaching to process 4711

Thread 2 (Thread 0x7f02 (LWP 4820) "pt_nccl_watchdg"):
#0  0x00007f5 in pthread_cond_wait () from /lib/libc.so.6
#1  0x00007f6 in ncclHeartbeat () from libtorch_cuda.so

Thread 1 (Thread 0x7f01 (LWP 4711) "python"):
#0  0x00007f5 in poll () from /lib/libc.so.6
#1  0x00007f6 in cuStreamSynchronize () from /lib/libcuda.so.1
#2  0x00007f7 in cudaStreamSynchronize () from libcudart.so
Traceback (most recent call first):
  File "/opt/venv/lib/python3.12/site-packages/torch/cuda/streams.py", line 105, in synchronize
  File "/home/u/train.py", line 55, in loss
`

const fault = `Fatal Python error: Aborted

Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait

Current thread 0x00007f2 (most recent call first):
  File "/opt/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 100 in barrier
  File "/home/u/save.py", line 12 in write
`

// stacksIn are the hints of a file of that name.
func stacksIn(t *testing.T, name string, b []byte) []hang.Hint {
	hints, skipped := stacks.Read(file(t, name, b))
	require.Empty(t, skipped)
	return hints
}

// A process stands at the main thread's innermost line of the program's own code.
func TestStacks(t *testing.T) {
	for text, want := range map[string][]hang.Hint{
		spy: {{Rank: -1, Pid: 4711, Stack: "train.py:31 in batches, in the data loader"},
			{Rank: -1, Pid: 4712, Stack: "train.py:40 in step"}},
		gdb:   {{Rank: -1, Pid: 4711, Stack: "train.py:55 in loss, in cuStreamSynchronize, waiting for its GPU"}},
		fault: {{Rank: -1, Stack: "save.py:12 in write"}},
	} {
		require.True(t, stacks.Is([]byte(text)), text)
		require.Equal(t, want, stacksIn(t, "stack", []byte(text)))
	}
	require.Equal(t, 3, stacksIn(t, "pyspy_rank_3.txt", []byte(spy))[0].Rank)
	for _, text := range []string{"", "Process 12: x", "epoch 1\n", "#0 \x00 Thread "} {
		require.False(t, stacks.Is([]byte(text)), text)
	}
}

// A stack goes to the rank of its process, and the answer says where the rank stands that the others wait for.
func TestHeard(t *testing.T) {
	j := &hang.Job{Groups: []hang.Group{{Name: "0", Desc: "default_pg", Ranks: []int{0, 1}}}}
	for r := range 2 {
		k := j.Rank(r)
		k.Source, k.Pid = "f", 4711+r
		if r == 1 {
			k.Calls = []hang.Call{{Number: 1, Kind: "all_reduce", Peer: -1, State: hang.Begun}}
		}
	}
	require.Equal(t, []bool{true, true}, j.Hear(stacksIn(t, "f", []byte(spy))))
	a := hang.Judge(j)
	require.Equal(t, "rank 0 never called all_reduce #1 of the default group, it stands at train.py:31 in batches, in "+
		"the data loader; rank 1 waits in all_reduce #1 of the default group", a.Sentence)
}

func FuzzStacks(f *testing.F) {
	f.Add([]byte(spy))
	f.Add([]byte(gdb))
	f.Add([]byte(fault))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, h := range stacksIn(t, "rank_1", b) {
			require.NotContains(t, h.Stack, "\n")
			require.Less(t, len(h.Stack), 4*(4<<10)*strings.Count(`\u0000`, "")) // unprintable characters are spelled out
		}
	})
}
