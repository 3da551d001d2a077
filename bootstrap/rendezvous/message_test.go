package rendezvous

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/trace/judge"
)

// samples are messages of every kind, without empty fields.
func samples() []Message {
	where5 := Position{Waiting: true, Calls: []Called{{4, [16]byte{4}}, {5, [16]byte{5, 5}}}, Counts: []int{7, 1 << 40}}
	return []Message{
		&Refusal{Cause: Timeout, Rank: -1, Missing: []int{1, 5}, Reason: "no"},
		&Welcome{},
		&Start{Salt: [32]byte{1, 2, 3}, Hosts: []int{0, 2}, Head: -1, Takers: 3, Apart: true, Pulse: 40000,
			Successors: []RankAddr{{1, "10.0.0.1:1"}}, Here: []int{1}, There: []int{0, 2}, Witness: true,
			Witnesses: []RankAddr{{3, "10.0.0.3:1"}}},
		&GiveUp{Timeout: true, Waited: time.Minute, Dead: []int{1, 3}, Reason: "gone"},
		&Part{Seq: 1 << 40, Data: []byte("data")},
		&Gathered{Seq: 5, Data: [][]byte{[]byte("a"), {}, []byte("ccc")}},
		&Withdraw{Seq: 6, Reason: "tired"},
		&Withdrawn{Seq: 7, Rank: 2, Missing: []int{0, 5}, Reason: "tired"},
		&Fail{Reason: "disk full", Culprits: []int{1, 4}, Broken: true, Silent: true},
		&Knock{Stage: 2, Targets: []int{1, 4}, At: []string{"10.0.0.1:1", ""}},
		&Knocked{Stage: 2, Heard: []bool{true, false}},
		&Failed{Failure{Rank: -1, Candidates: []int{0, 2}, Path: true, Reason: "cut"}},
		&Failed{Failure{Rank: 2, Culprits: []int{2}, Died: true, Reason: "gone"}},
		&Failed{Failure{Rank: 2, Left: true, Number: 7}},
		&Failed{Failure{Rank: -1, Disagree: &Disagreement{Number: 3, RankB: 1, CallA: [16]byte{1}, CallB: [16]byte{2},
			Counts: &Differ{2, 7, 1 << 40}}}},
		&Failed{Failure{Rank: -1, Culprits: []int{3},
			Late: &Lateness{Reason: judge.Absent, Call: where5.Calls[1], Waiting: []int{0, 1}, Waited: time.Second,
				Still: time.Millisecond, Last: where5.Calls[0]}}},
		&Late{Position{Calls: where5.Calls, Stop: Stopped{Last: 6, At: 5, Peer: -1, Sending: true, Unsure: true, Round: 2,
			Step: 3, Waited: time.Minute, Still: time.Second}}},
		&Halt{},
		&Regroup{Round: 2, Wait: time.Second},
		&Regrouped{Round: 2, Members: []int{0, 3}, ID: []byte("id"), Reason: "no"},
		&Leave{true, Known{true, where5}},
		&Parted{Apart},
		&Inquire{Position{Waiting: true, Calls: where5.Calls, Awaits: []int{1, 3}, Needs: NeedOf(3),
			Messages: []Messages{{2, 1 << 40, [16]byte{7}}, {Peer: 3, Count: 1}}}},
		&Where{},
		&There{Known{true, where5}},
		&Silent{Ranks: []int{2, 3}},
		&Gone{Rank: 6, Seq: 9, Last: 7},
		&Bye{},
		&Held{Seq: 9},
		&Resend{Held{Seq: 9}},
		&Roster{Came: []int{0, 3}, Cards: [][]byte{[]byte("a"), []byte("b")}, Away: map[int]string{1: "", 2: "gone"}},
	}
}

func read(b []byte, limit int) (Message, error) {
	return Decode(bufio.NewReader(bytes.NewReader(b)), limit)
}

func TestMessages(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, m := range samples() {
		seen[reflect.TypeOf(m)] = true
		var both sync.WaitGroup // a message may be written for several ranks at once
		both.Go(func() { Encode(m) })
		frame := Encode(m)
		both.Wait()
		got, err := read(frame, MaxBody)
		require.NoError(t, err, "%T", m)
		require.Equal(t, m, got)

		for i := range frame { // cut at every position
			_, err := read(frame[:i], MaxBody)
			require.Error(t, err, "%T cut to %d bytes", m, i)
		}
		body, again := frame[5:], reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message)
		for i := range body { // a body that ends early, in a frame of that length
			require.ErrorIs(t, Parse(body[:i], again), ErrMalformed, "%T, body of %d bytes", m, i)
		}
		require.ErrorIs(t, Parse(append(body, 0), again), ErrMalformed, "%T with a byte too many", m)

		got, err = Decode(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(frame))), MaxBody)
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for _, m := range kinds {
		require.True(t, seen[reflect.TypeOf(m)], "%T", m)
	}
}

// kind is the byte that stands for messages like m.
func kind(m Message) byte { return Encode(m)[4] }

func TestBadFrames(t *testing.T) {
	u32 := func(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }
	tests := []struct{ name, frame string }{
		{"unknown kind", u32(0) + "\x00"},
		{"longer than the limit", u32(2000) + "\x01" + strings.Repeat("x", 2000)},
		{"rank above the most", string(Encode(&Gone{Rank: MaxRanks}))},
		{"more calls than travel", string(Encode(&There{Known{Position: Position{Calls: make([]Called, maxCalls+1)}}}))},
		{"a flag of 2", u32(6) + string(kind(&There{})) + "\x02\x00" + u32(0)},
		{"more parts than bytes", u32(12) + string(kind(&Gathered{})) + u32(0) + u32(0) + u32(1<<30)},
		{"more ranks than bytes", u32(36) + string(kind(&Start{})) + strings.Repeat("x", 32) + u32(1<<30)},
		{"a part from behind the one before", u32(20) + string(kind(&Gathered{})) + strings.Repeat("\x00", 8) + u32(1) +
			u32(4) + "\x04\x00\x01\x04"},
		{"a part of nothing", u32(20) + string(kind(&Gathered{})) + strings.Repeat("\x00", 8) + u32(1) + u32(4) +
			"\x04\x00\x00\x00"},
		{"blob longer than the body", u32(12) + string(kind(&Part{})) + u32(0) + u32(0) + u32(77)},
		{"http", "GET / HTTP/1.1\r\n\r\n"},
		{"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read([]byte(tt.frame), 1800)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
}

// A frame that announces a long body must not cost memory before the body comes.
func TestPromisesCostNothing(t *testing.T) {
	head := append(binary.BigEndian.AppendUint32(nil, MaxBody), kind(&Gathered{}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		_, err := read(head, MaxBody)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "for ten promises of a gigabyte")
}

func TestReadBodyInSteps(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 500_000)
	got, err := readBody(bytes.NewReader(want), len(want))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

func TestGatheredProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Gathered{
			Seq:  rapid.Uint64().Draw(t, "seq"),
			Data: rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "data"),
		}
		got, err := read(Encode(m), MaxBody)
		require.NoError(t, err)
		require.Equal(t, len(m.Data), len(got.(*Gathered).Data))
		for i, d := range m.Data {
			require.True(t, bytes.Equal(d, got.(*Gathered).Data[i]))
		}
	})
}

// profile resembles the part of a rank in the AllGather that opens a communicator.
func profile(r int) []byte {
	return fmt.Appendf(nil, `{"Version":"0.2.0","Rank":%d,"Host":"5f2b3c4d-%04x","Pid":%d,"Hostname":"node%04d.example",`+
		`"Wish":["inproc","shm","plugin","ib","socket"],"Settings":[{"Name":"Deterministic","Value":""}],"Cores":96}`,
		r, r/8, 1000+r*7919%30000, r/8)
}

// Profiles of many ranks take a small part of their bytes, and come as they were.
func TestPartsAreCompact(t *testing.T) {
	m := &Gathered{Data: make([][]byte, 2000)}
	total := 0
	for r := range m.Data {
		m.Data[r] = profile(r)
		total += len(m.Data[r])
	}
	frame := Encode(m)
	require.Less(t, len(frame), total/6)
	got, err := read(frame, MaxBody)
	require.NoError(t, err)
	require.Equal(t, m, got)
}

func TestLongReasonsAreCut(t *testing.T) {
	got, err := read(Encode(&Fail{Reason: strings.Repeat("x", 3*MaxText)}), MaxBody)
	require.NoError(t, err)
	require.Len(t, got.(*Fail).Reason, MaxText)
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Encode(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b, 1<<16)
		if err != nil {
			return
		}
		frame := Encode(m)              // Append writes the bytes that were parsed
		if g, ok := m.(*Gathered); ok { // except for the choice of bytes taken from the part before
			again, err := read(frame, MaxBody)
			require.NoError(t, err)
			require.Equal(t, g, again)
			return
		}
		require.Equal(t, b[:len(frame)], frame)
	})
}

func TestClaim(t *testing.T) {
	c := &Claim{Rank: 3, Size: 8, Pid: 4711, Hosts: true, Host: "box", Partial: true, Card: []byte("me"), Port: 1,
		Rival: []byte("hub")}
	body := Append(nil, c)
	var got Claim
	require.NoError(t, Parse(body, &got))
	require.Equal(t, *c, got)
	for i := range body {
		require.Error(t, Parse(body[:i], new(Claim)))
	}
	require.Error(t, Parse(append(body, 0), new(Claim)))
	for _, bad := range []Claim{{Rank: 8, Size: 8}, {Rank: 0, Size: 0}, {Rank: -1, Size: 8},
		{Rank: 0, Size: MaxRanks + 1}} {
		require.Error(t, Parse(Append(nil, &bad), new(Claim)), "%+v", bad)
	}
}

// A Failed message without the culprits that its Lateness's text names, such as both ends of a link, is malformed.
func TestParseLateness(t *testing.T) {
	for _, bad := range []Failed{
		{Failure{Rank: -1, Late: &Lateness{Reason: judge.Link}}},
		{Failure{Rank: -1, Culprits: []int{1}, Late: &Lateness{Reason: judge.Link}}},
		{Failure{Rank: -1, Late: &Lateness{Reason: judge.Absent}}},
		{Failure{Rank: -1, Late: &Lateness{Last: Called{Number: 1}}}},
		{Failure{Rank: -1, Culprits: []int{1}, Late: &Lateness{Reason: judge.Reasons}}},
	} {
		require.Error(t, Parse(Append(nil, &bad), new(Failed)), "%v", bad.Late.Reason)
	}
	good := Failed{Failure{Rank: -1, Culprits: []int{1, 2}, Late: &Lateness{Reason: judge.Link}}}
	require.NoError(t, Parse(Append(nil, &good), new(Failed)))
}
