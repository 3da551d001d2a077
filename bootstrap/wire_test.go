package bootstrap

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/trace/judge"
)

// samples are messages of every kind, without empty fields.
func samples() []message {
	where5 := Position{Waiting: true, Calls: []Called{{4, [16]byte{4}}, {5, [16]byte{5, 5}}}, Counts: []int{7, 1 << 40}}
	return []message{
		&refusal{Cause: causeTimeout, Rank: -1, Missing: []int{1, 5}, Reason: "no"},
		&welcome{},
		&start{Salt: salt{1, 2, 3}, Hosts: []int{0, 2}, Head: -1, Takers: 3, Apart: true, Pulse: 40000,
			Heirs: []heir{{1, "10.0.0.1:1"}}, Here: []int{1}, There: []int{0, 2}, Witness: true,
			Witnesses: []heir{{3, "10.0.0.3:1"}}},
		&giveUp{Timeout: true, Waited: time.Minute, Dead: []int{1, 3}, Reason: "gone"},
		&part{Seq: 1 << 40, Data: []byte("data")},
		&gathered{Seq: 5, Data: [][]byte{[]byte("a"), {}, []byte("ccc")}},
		&withdraw{Seq: 6, Reason: "tired"},
		&withdrawn{Seq: 7, Rank: 2, Missing: []int{0, 5}, Reason: "tired"},
		&fail{Reason: "disk full", Culprits: []int{1, 4}, Broken: true, Silent: true},
		&knock{Stage: 2, Targets: []int{1, 4}, At: []string{"10.0.0.1:1", ""}},
		&knocked{Stage: 2, Heard: []bool{true, false}},
		&failed{Failure{Rank: -1, Candidates: []int{0, 2}, Path: true, Reason: "cut"}},
		&failed{Failure{Rank: 2, Culprits: []int{2}, Died: true, Reason: "gone"}},
		&failed{Failure{Rank: 2, Left: true, Number: 7}},
		&failed{Failure{Rank: -1, Disagree: &Disagreement{Number: 3, RankB: 1, CallA: [16]byte{1}, CallB: [16]byte{2},
			Counts: &Differ{2, 7, 1 << 40}}}},
		&failed{Failure{Rank: -1, Culprits: []int{3},
			Late: &Lateness{Reason: judge.Absent, Call: where5.Calls[1], Waiting: []int{0, 1}, Waited: time.Second,
				Still: time.Millisecond, Last: where5.Calls[0]}}},
		&late{Position{Calls: where5.Calls, Stop: Stopped{Last: 6, At: 5, Peer: -1, Sending: true, Unsure: true, Round: 2,
			Step: 3, Waited: time.Minute, Still: time.Second}}},
		&halt{},
		&regroup{Round: 2, Wait: time.Second},
		&regrouped{Round: 2, Members: []int{0, 3}, ID: []byte("id"), Reason: "no"},
		&leave{true, known{true, where5}},
		&parted{Apart},
		&inquire{Position{Waiting: true, Calls: where5.Calls, Awaits: []int{1, 3}, Needs: NeedOf(3),
			Messages: []Messages{{2, 1 << 40, [16]byte{7}}, {Peer: 3, Count: 1}}}},
		&where{},
		&position{known{true, where5}},
		&silent{Ranks: []int{2, 3}},
		&left{Rank: 6, Seq: 9, Last: 7},
		&bye{},
		&held{Seq: 9},
		&resend{held{Seq: 9}},
		&roster{Came: []int{0, 3}, Cards: [][]byte{[]byte("a"), []byte("b")}, Away: map[int]string{1: "", 2: "gone"}},
	}
}

func read(b []byte, limit int) (message, error) {
	return decode(bufio.NewReader(bytes.NewReader(b)), limit)
}

func TestMessages(t *testing.T) {
	seen := map[kind]bool{}
	for _, m := range samples() {
		seen[m.kind()] = true
		frame := encode(m)
		got, err := read(frame, maxBody)
		require.NoError(t, err, "%T", m)
		require.Equal(t, m, got)

		for i := range frame { // cut at every position
			_, err := read(frame[:i], maxBody)
			require.Error(t, err, "%T cut to %d bytes", m, i)
		}
		body := frame[5:]
		for i := range body { // a body that ends early, in a frame of that length
			require.ErrorIs(t, newMessage(m.kind()).Parse(body[:i]), errMalformed, "%T, body of %d bytes", m, i)
		}
		require.ErrorIs(t, newMessage(m.kind()).Parse(append(body, 0)), errMalformed, "%T with a byte too many", m)

		got, err = decode(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(frame))), maxBody)
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for k := range kind(255) {
		require.Equal(t, newMessage(k) != nil, seen[k], "kind %d", k)
	}
}

func TestBadFrames(t *testing.T) {
	u32 := func(v int) string { return string(appendU32(nil, v)) }
	tests := []struct{ name, frame string }{
		{"unknown kind", u32(0) + "\x00"},
		{"longer than the limit", u32(2000) + "\x01" + strings.Repeat("x", 2000)},
		{"rank above the most", string(encode(&left{Rank: maxRanks}))},
		{"more calls than travel", string(encode(&position{known{Position: Position{Calls: make([]Called, maxCalls+1)}}}))},
		{"a flag of 2", u32(6) + string(byte(kPosition)) + "\x02\x00" + u32(0)},
		{"more parts than bytes", u32(12) + string(byte(kGathered)) + u32(0) + u32(0) + u32(1<<30)},
		{"more ranks than bytes", u32(36) + string(byte(kStart)) + strings.Repeat("x", 32) + u32(1<<30)},
		{"a part from behind the one before", u32(20) + string(byte(kGathered)) + strings.Repeat("\x00", 8) + u32(1) +
			u32(4) + "\x04\x00\x01\x04"},
		{"a part of nothing", u32(20) + string(byte(kGathered)) + strings.Repeat("\x00", 8) + u32(1) + u32(4) +
			"\x04\x00\x00\x00"},
		{"blob longer than the body", u32(12) + string(byte(kPart)) + u32(0) + u32(0) + u32(77)},
		{"http", "GET / HTTP/1.1\r\n\r\n"},
		{"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read([]byte(tt.frame), 1800)
			require.ErrorIs(t, err, errMalformed)
		})
	}
}

// A frame that announces a long body must not cost memory before the body comes.
func TestPromisesCostNothing(t *testing.T) {
	head := append(appendU32(nil, maxBody), byte(kGathered))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		_, err := read(head, maxBody)
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
		m := &gathered{
			Seq:  rapid.Uint64().Draw(t, "seq"),
			Data: rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "data"),
		}
		got, err := read(encode(m), maxBody)
		require.NoError(t, err)
		require.Equal(t, len(m.Data), len(got.(*gathered).Data))
		for i, d := range m.Data {
			require.True(t, bytes.Equal(d, got.(*gathered).Data[i]))
		}
	})
}

// Profiles of many ranks take a small part of their bytes, and come as they were.
func TestPartsAreCompact(t *testing.T) {
	m := &gathered{Data: make([][]byte, 2000)}
	total := 0
	for r := range m.Data {
		m.Data[r] = profileOf(r)
		total += len(m.Data[r])
	}
	frame := encode(m)
	require.Less(t, len(frame), total/7)
	got, err := read(frame, maxBody)
	require.NoError(t, err)
	require.Equal(t, m, got)
}

func TestLongReasonsAreCut(t *testing.T) {
	got, err := read(encode(&fail{Reason: strings.Repeat("x", 3*maxText)}), maxBody)
	require.NoError(t, err)
	require.Len(t, got.(*fail).Reason, maxText)
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(encode(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b, 1<<16)
		if err != nil {
			return
		}
		frame := encode(m)              // Append writes the bytes that were parsed
		if g, ok := m.(*gathered); ok { // except for the choice of bytes taken from the part before
			again, err := read(frame, maxBody)
			require.NoError(t, err)
			require.Equal(t, g, again)
			return
		}
		require.Equal(t, b[:len(frame)], frame)
	})
}
