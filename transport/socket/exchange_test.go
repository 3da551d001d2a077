package socket

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/test/payload"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// BenchmarkExchange does to the wire what two ranks of an all-reduce do: both
// send a buffer and receive one, slot by slot, in two processes. MB/s count one
// direction. The variants: the payload is copied into a slot or sent from its
// place, and is received into a slot or into its place.
//
//	go test -run '^$' -bench Exchange ./transport/socket
func BenchmarkExchange(b *testing.B) {
	if spec := os.Getenv("RINGO_SOCKET_EXCHANGE"); spec != "" {
		x := new(exchange)
		_, err := fmt.Sscanf(spec, "%s %d %d %d %t %t", &x.network, &x.size, &x.slot, &x.slots, &x.from, &x.into)
		require.NoError(b, err)
		x.open(b, 1, os.NewFile(3, "in"), os.NewFile(4, "out"))
		for err = nil; err == nil; {
			err = x.step()
		}
		require.ErrorIs(b, err, fifo.ErrClosed)
		os.Exit(0)
	}
	for _, network := range []string{"tcp", "unix"} {
		for _, size := range []int{8, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20} {
			for _, slot := range []int{128 << 10, 256 << 10, 512 << 10} {
				if slot > size && slot != 128<<10 {
					continue
				}
				for _, way := range []struct{ from, into bool }{{}, {into: true}, {true, true}} {
					x := &exchange{network: network, size: size, slot: slot, slots: 8, from: way.from, into: way.into}
					b.Run(fmt.Sprintf("%s/size=%d/slot=%dK/from=%t/into=%t", network, size, slot>>10, x.from, x.into), x.bench)
				}
			}
		}
	}
}

type exchange struct {
	network           string
	size, slot, slots int
	from, into        bool

	send     *sendConn
	recv     *recvConn
	src, dst []byte
}

func (x *exchange) bench(b *testing.B) {
	toR, toW, err := os.Pipe()
	require.NoError(b, err)
	fromR, fromW, err := os.Pipe()
	require.NoError(b, err)
	cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkExchange$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), fmt.Sprintf("RINGO_SOCKET_EXCHANGE=%s %d %d %d %t %t", x.network, x.size, x.slot,
		x.slots, x.from, x.into))
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{toR, fromW}
	require.NoError(b, cmd.Start())
	toR.Close()
	fromW.Close()
	x.open(b, 0, fromR, toW)
	for range 10 {
		require.NoError(b, x.step())
	}
	b.SetBytes(int64(x.size))
	b.ReportAllocs()
	for b.Loop() {
		if err := x.step(); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, x.send.Close())
	require.NoError(b, cmd.Wait())
}

// open connects rank with the other; addresses go through in and out.
func (x *exchange) open(b *testing.B, rank int, in, out *os.File) {
	o := Options{Network: x.network}
	if x.network == "tcp" {
		o.IfName = "lo"
	}
	tr, addr, _ := listening(b, rank, transport.Limits{SlotBytes: x.slot, Slots: x.slots}, o)
	_, err := out.Write(addr)
	require.NoError(b, errors.Join(err, out.Close()))
	addr, err = io.ReadAll(in)
	require.NoError(b, err)
	peer := transport.Info{Rank: 1 - rank, Host: "host"}
	s, err := tr.Dial(peer, addr)
	require.NoError(b, err)
	r, err := tr.Accept(peer)
	require.NoError(b, err)
	x.send, x.recv = s.(*sendConn), r.(*recvConn)
	x.src, x.dst = make([]byte, x.size), make([]byte, x.size)
	clear(x.src)
	payload.Fill(x.src, 1)
}

// step keeps half a queue of slots on its way, as a schedule does.
func (x *exchange) step() error {
	pieces := max(1, x.size/x.slot)
	ahead := min(pieces, x.slots/2)
	for i := range pieces + ahead {
		if i < pieces {
			if err := x.put(i); err != nil {
				return err
			}
		}
		if i >= ahead {
			if err := x.get(i - ahead); err != nil {
				return err
			}
		}
	}
	if x.from {
		return x.send.Flush()
	}
	return nil
}

func (x *exchange) piece(b []byte, i int) mem.Region {
	return mem.Host(b[i*x.slot : min(len(b), (i+1)*x.slot)])
}

func (x *exchange) put(i int) error {
	src := x.piece(x.src, i)
	if x.from {
		return x.send.PublishFrom(src, transport.Stamp{1})
	}
	slot, err := x.send.Reserve(src.Len())
	if err != nil {
		return err
	}
	copy(slot.Bytes(), src.Bytes())
	return x.send.Publish(transport.Stamp{1})
}

func (x *exchange) get(i int) error {
	dst := x.piece(x.dst, i)
	if x.into {
		_, err := x.recv.NextInto(dst)
		return err
	}
	slot, _, err := x.recv.Next()
	if err != nil {
		return err
	}
	copy(dst.Bytes(), slot.Bytes())
	return x.recv.Release()
}
