//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// gpu is memory that the plugin is told to be a GPU's. What it receives there is not seen
// before a flush.
func gpu(b []byte) mem.Region { return mem.Device(0, mem.Host(b).Ptr(), len(b)) }

// Payloads of registered memory go from there to there, memory of GPUs too, among slots that
// are copied; memory that is not registered is copied.
func TestDirect(t *testing.T) {
	const slot, slots, messages = 32 << 10, 4, 60
	for _, v := range versions {
		for _, delay := range []int{0, 2} {
			for _, kind := range []string{"GPU", "host"} {
				t.Run(fmt.Sprintf("v%d delay %d %s", v.number, delay, kind), func(t *testing.T) {
					f := newFake(t, version(v.number))
					f.set(t, "", 0, delay)
					f.call(t, "device", 1, 100, hostMemory|deviceMemory, 0, 0)
					l := f.load(t)
					region := mem.Host
					if kind == "GPU" {
						region = gpu
					}
					t.Run("traffic", func(t *testing.T) {
						ranks, infos, addrs := two(t, l, transport.Limits{SlotBytes: slot, Slots: slots})
						src, dst, plain := make([]byte, slots*slot), make([]byte, slots*slot), make([]byte, slot)
						_, err := ranks[0].Register(transport.Memory{Region: region(src)})
						require.NoError(t, err)
						release, err := ranks[1].Register(transport.Memory{Region: region(dst)})
						require.NoError(t, err)
						send, err := ranks[0].Dial(infos[1], addrs[1])
						require.NoError(t, err)
						recv, err := ranks[1].Accept(infos[0])
						require.NoError(t, err)
						from, into := send.(transport.From), recv.(transport.Into)
						// How message i is sent and received: copied, from or into memory that is registered or not.
						size := func(i int) int { return []int{slot, 0, 100, directMin, 9999}[i%5] }
						sent := func(i int) []byte { return src[i%slots*slot:][:size(i)] }
						same := func(i int, b []byte) error {
							if !bytes.Equal(b, bytes.Repeat([]byte{byte(i)}, size(i))) {
								return fmt.Errorf("message %d of %d bytes is not what was sent", i, size(i))
							}
							return nil
						}
						var g errgroup.Group
						g.Go(func() (err error) {
							for i := 0; i < messages && err == nil; i++ {
								if i%slots == 0 {
									if err := from.Flush(); err != nil { // src is free again
										return err
									}
								}
								content := bytes.Repeat([]byte{byte(i)}, size(i))
								switch {
								case i%7 == 6 || kind == "GPU" && size(i) == 100:
									var r mem.Region
									if r, err = send.Reserve(size(i)); err == nil {
										copy(r.Bytes(), content)
										err = send.Publish(transport.Stamp{uint64(i)})
									}
								case i%7 == 5:
									err = from.PublishFrom(mem.Host(content), transport.Stamp{uint64(i)})
								default:
									copy(sent(i), content)
									err = from.PublishFrom(region(sent(i)), transport.Stamp{uint64(i)})
								}
							}
							if err == nil {
								err = from.Flush()
							}
							return err
						})
						g.Go(func() error {
							for i := range messages {
								var err error
								switch b := dst[i%slots*slot:][:size(i)]; {
								case i%3 == 0: // whatever the sender does
									var r mem.Region
									if r, _, err = recv.Next(); err == nil {
										if err = same(i, r.Bytes()); err == nil {
											err = recv.Release()
										}
									}
								case i%3 == 1 || i%7 >= 5 || size(i) == 100:
									if _, err = into.NextInto(mem.Host(plain[:size(i)])); err == nil {
										err = same(i, plain[:size(i)])
									}
								default:
									if _, err = into.NextInto(region(b)); err == nil {
										err = same(i, b)
									}
								}
								if err != nil {
									return fmt.Errorf("message %d: %w", i, err)
								}
							}
							return nil
						})
						require.NoError(t, g.Wait())
						require.NoError(t, release())
					})
					f.clean(t, contexts(v.number))
				})
			}
		}
	}
}

// A payload that goes by itself allocates nothing.
func TestDirectAllocations(t *testing.T) {
	f := newFake(t, version(11))
	ranks, infos, addrs := two(t, f.load(t), transport.Limits{SlotBytes: 16 << 10, Slots: 4})
	b := make([]byte, 32<<10)
	for _, r := range ranks {
		_, err := r.Register(transport.Memory{Region: mem.Host(b)})
		require.NoError(t, err)
	}
	send, err := ranks[0].Dial(infos[1], addrs[1])
	require.NoError(t, err)
	recv, err := ranks[1].Accept(infos[0])
	require.NoError(t, err)
	from, into := send.(transport.From), recv.(transport.Into)
	message := func() {
		if err := from.PublishFrom(mem.Host(b[:16<<10]), transport.Stamp{}); err != nil {
			t.Fatal(err)
		}
		if _, err := into.NextInto(mem.Host(b[16<<10:])); err != nil {
			t.Fatal(err)
		}
		if err := from.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		message()
	}
	require.Zero(t, testing.AllocsPerRun(200, message))
}

// A slot that waits in registered memory is received after the sender has closed.
func TestDirectGoodbye(t *testing.T) {
	f := newFake(t, version(11))
	ranks, infos, addrs := two(t, f.load(t), transport.Limits{SlotBytes: 32 << 10, Slots: 4})
	src := bytes.Repeat([]byte{7}, 32<<10)
	_, err := ranks[0].Register(transport.Memory{Region: mem.Host(src)})
	require.NoError(t, err)
	send, err := ranks[0].Dial(infos[1], addrs[1])
	require.NoError(t, err)
	recv, err := ranks[1].Accept(infos[0])
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, send.(transport.From).PublishFrom(mem.Host(src), transport.Stamp{}))
	}
	require.NoError(t, send.Close())
	for range 2 {
		r, _, err := recv.Next()
		require.NoError(t, err)
		require.True(t, bytes.Equal(src, r.Bytes()))
		require.NoError(t, recv.Release())
	}
	_, _, err = recv.Next()
	require.ErrorIs(t, err, transport.ErrClosed)
}

// A flush or a registration that fails is an error of the end whose call it was.
func TestDirectFailures(t *testing.T) {
	for _, c := range []struct {
		call  string
		after int
	}{{"iflush", 1}, {"regMr", 0}, {"regMr", 1}} {
		f := newFake(t, version(11))
		f.call(t, "device", 1, 100, hostMemory|deviceMemory, 0, 0)
		ranks, infos, addrs := two(t, f.load(t), transport.Limits{SlotBytes: 300, Slots: 4})
		b := make([]byte, 300)
		for _, r := range ranks {
			_, err := r.Register(transport.Memory{Region: gpu(b)})
			require.NoError(t, err)
		}
		send, err := ranks[0].Dial(infos[1], addrs[1])
		require.NoError(t, err)
		recv, err := ranks[1].Accept(infos[0])
		require.NoError(t, err)
		f.set(t, c.call, c.after, 0)
		for err == nil {
			if err = send.(transport.From).PublishFrom(gpu(b), transport.Stamp{}); err == nil {
				_, err = recv.(transport.Into).NextInto(gpu(b))
			}
		}
		require.ErrorContains(t, err, "(v11): "+c.call+": device 0 test0: rank ")
		require.Zero(t, f.call(t, "faults"))
	}
}

// Memory of GPUs needs a device that takes it, and to be registered.
func TestNoGPUMemory(t *testing.T) {
	f := newFake(t, version(11))
	ranks, infos, addrs := two(t, f.load(t), transport.Limits{SlotBytes: 300, Slots: 4})
	b := make([]byte, 300)
	_, err := ranks[0].Register(transport.Memory{Region: gpu(b)})
	require.ErrorContains(t, err, "plugin: register: network plugin libnccl-net-test.so (v11): getProperties: device 0 test0 takes no GPU memory")
	_, err = New(transport.Config{}, f.load(t), Options{}).Register(transport.Memory{Region: mem.Host(b)})
	require.ErrorContains(t, err, "register before listen")
	send, err := ranks[0].Dial(infos[1], addrs[1])
	require.NoError(t, err)
	recv, err := ranks[1].Accept(infos[0])
	require.NoError(t, err)
	require.ErrorIs(t, send.(transport.From).PublishFrom(gpu(b), transport.Stamp{}), errUnknown)
	require.NoError(t, send.(transport.From).PublishFrom(mem.Host(b), transport.Stamp{}))
	_, err = recv.(transport.Into).NextInto(gpu(b))
	require.ErrorIs(t, err, errUnknown)
}
