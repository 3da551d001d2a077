package internal_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/pickle"
)

// dict is a dictionary of keys, each before its value.
func dict(keysAndValues ...any) *pickle.Dict {
	d := new(pickle.Dict)
	for i := 0; i < len(keysAndValues); i += 2 {
		d.Set(keysAndValues[i].(string), keysAndValues[i+1])
	}
	return d
}

// Pickles as Python writes them.
func TestPickle(t *testing.T) {
	list := func(v ...any) *pickle.List { return &pickle.List{Items: v} }
	for text, want := range map[string]any{
		"\x80\x02N.":                                                 nil,
		"\x80\x02\x88.":                                              true,
		"\x80\x02\x89.":                                              false,
		"\x80\x02K\x07.":                                             int64(7),
		"\x80\x02M\x00\x01.":                                         int64(256),
		"\x80\x02J\xff\xff\xff\xff.":                                 int64(-1),
		"\x80\x02\x8a\x00.":                                          int64(0),
		"\x80\x02\x8a\x05\x00\xf2\x05\x2a\x01.":                      int64(5_000_000_000),
		"\x80\x02\x8a\x02\x00\x80.":                                  int64(-32768),
		"\x80\x02G?\xf8\x00\x00\x00\x00\x00\x00.":                    1.5,
		"\x80\x02X\x03\x00\x00\x00abcq\x00.":                         "abc",
		"\x80\x02]q\x00(K\x01K\x02e.":                                list(int64(1), int64(2)),
		"\x80\x02]K\x01a.":                                           list(int64(1)),
		"\x80\x02K\x01K\x02\x86.":                                    list(int64(1), int64(2)),
		"\x80\x02(K\x01K\x02K\x03K\x04t.":                            list(int64(1), int64(2), int64(3), int64(4)),
		"\x80\x02).":                                                 list(),
		"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s.":                    dict("a", int64(1)),
		"\x80\x02}(K\x05K\x01X\x01\x00\x00\x00bNu.":                  dict("5", int64(1), "b", nil),
		"\x80\x02(X\x01\x00\x00\x00aK\x01d.":                         dict("a", int64(1)),
		"\x80\x02X\x01\x00\x00\x00aq\x00h\x00\x86.":                  list("a", "a"),
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.": "a",
		"\x80\x02K\x01K\x020.":                                       int64(1),
		"\x80\x02K\x01(K\x02K\x031.":                                 int64(1),
		// PyTorch's lists of integers.
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R.":          list(int64(1), int64(2)),
		"\x80\x04\x8c\x11torch.jit._pickle\x8c\x0dbuild_intlist\x93]K\x03a\x85R.": list(int64(3)),
	} {
		v, err := pickle.Decode([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, v, "%q", text)
	}
}

// The keys of a dictionary come in the order in which they were set, as far as is asked.
func TestPickledDict(t *testing.T) {
	var d *pickle.Dict
	for range d.All() {
		t.Fatal("there is none")
	}
	d = &pickle.Dict{}
	d.Set("b", int64(1))
	d.Set("a", nil)
	d.Set("b", int64(2))
	var keys []string
	var values []any
	for k, v := range d.All() {
		keys, values = append(keys, k), append(values, v)
	}
	require.Equal(t, []string{"b", "a", "b"}, keys)
	require.Equal(t, []any{int64(1), nil, int64(2)}, values)
	for k := range d.All() {
		require.Equal(t, "b", k)
		break
	}
}

// A pickle that is no data, or is cut off, is an error with a sentence.
func TestPickleRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "too early",
		"\x80":                         "too early",
		"\x80\x02X\xff\xff\xff\xffab.": "too early",
		"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffab.": "too early",
		"\x80\x02.":                       "not there",
		"\x80\x02(.":                      "not there",
		"\x80\x02h\x00.":                  "not there",
		"\x80\x02K\x01r\x05\x00\x00\x00.": "is stored before",
		"\x80\x02K\x01K\x02a.":            "no list",
		"\x80\x02}K\x01s.":                "not there",
		"\x80\x02K\x01K\x02K\x03s.":       "keys and values",
		"\x80\x02}]K\x01s.":               "a key of type",
		"\x80\x02\x8a\x09123456789.":      "an integer of 9 bytes",
		"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.": `wants "system" of "posix"`,
		"\x80\x04\x8c\x02os\x8c\x06system\x93.":             `wants "system" of "os"`,
		"\x80\x02K\x01K\x02R.":                              "a call",
		"\x80\x02c" + strings.Repeat("a", 1000):             "without end",
		"\x80\x02K\x01b.":                                   "not for data",
	} {
		_, err := pickle.Decode([]byte(text))
		require.ErrorContains(t, err, want, "%q", text)
	}
	// A list may contain itself.
	v, err := pickle.Decode([]byte("\x80\x02]q\x00h\x00a."))
	require.NoError(t, err)
	require.Same(t, v, v.(*pickle.List).Items[0])
}

// Wherever a pickle is cut off, and whatever is missing on the stack, there is an error and no value.
func TestPickleCutOff(t *testing.T) {
	for _, text := range []string{
		"\x80\x02\x8a\x05\x00\xf2\x05\x2a\x01.", "\x80\x02G?\xf8\x00\x00\x00\x00\x00\x00.",
		"\x80\x02X\x03\x00\x00\x00abcq\x00.",
		"\x80\x02]q\x00(K\x01K\x02e.", "\x80\x02(X\x01\x00\x00\x00aK\x01d.", "\x80\x02X\x01\x00\x00\x00aq\x00h\x00\x86.",
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R.",
		"\x80\x04\x8c\x11torch.jit._pickle\x8c\x0dbuild_intlist\x93]K\x03a\x85R.", "\x80\x02M\x00\x01.",
		"\x80\x02J\xff\xff\xff\xff.",
	} {
		for n := range len(text) {
			v, err := pickle.Decode([]byte(text[:n]))
			require.Error(t, err, "%q", text[:n])
			require.Nil(t, v, "%q", text[:n])
		}
	}
	for _, code := range "0abdeRstuq\x85\x86\x87\x93\x94" { // each takes a value that the stack lacks
		_, err := pickle.Decode([]byte("\x80\x04" + string([]byte{byte(code)}) + "\x00."))
		require.Error(t, err, "%q", code)
		_, err = pickle.Decode([]byte("\x80\x04(" + string([]byte{byte(code)}) + "\x00."))
		require.Error(t, err, "%q", code)
	}
}

func FuzzPickle(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s."))
	f.Add([]byte("\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R."))
	f.Add([]byte("\x80\x02(K\x01G?\xf8\x00\x00\x00\x00\x00\x00K\x03K\x04t."))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := pickle.Decode(b)
		if err != nil {
			return
		}
		switch v := v.(type) {
		case nil, bool, int64, string, *pickle.List, *pickle.Dict:
		case float64:
			_ = math.IsNaN(v)
		default:
			t.Errorf("%T", v)
		}
	})
}
