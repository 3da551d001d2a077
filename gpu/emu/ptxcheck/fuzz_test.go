package ptxcheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

func TestEval(t *testing.T) {
	s := scope{rank: 1, gpus: 3, element: 5,
		buffer: func(name string, gpu int) (uint64, error) { return uint64(1000 * gpu), nil }}
	for text, want := range map[string]value{
		"7": {n: 7}, "-7": {n: -7}, "0x10": {n: 16}, "0xffffffffffffffff": {n: -1}, "1e3": {f: 1000, float: true},
		"1e-1": {f: 0.1, float: true}, ".5": {f: 0.5, float: true},
		"1+2*3": {n: 7}, "(1+2)*3": {n: 9}, "10-2-3": {n: 5}, "7/2": {n: 3}, "7.0/2": {f: 3.5, float: true},
		"(0-1)%3": {n: 2}, "--1": {n: 1},
		"rank": {n: 1}, "gpus": {n: 3}, "i": {n: 5}, " i * rank ": {n: 5}, "pick(4,5,6)": {n: 5},
		"pick(4, (1+1)*2, 6)+1": {n: 5},
		"x":                     {n: 1000, address: true}, "x@2": {n: 2000, address: true}, "x@((rank+2)%gpus)": {n: 0, address: true},
		"x@0+4*2": {n: 8, address: true}, "8+x": {n: 1008, address: true},
		"0x1e+1": {n: 31},
	} {
		v, err := eval(text, s)
		require.NoError(t, err, text)
		require.Equal(t, want, v, text)
	}
	for text, want := range map[string]string{
		"": "missing at its end", "1+": "missing at its end", "1 2": `"2" is too much`, "(1": "( without its )",
		"1/0": "division by 0", "1%0": "division by 0",
		"1.5%2": "for whole numbers", "x*2": "added to an address", "x+x": "added to an address",
		"1-x": "added to an address", "x+1.5": "added to an address", "-x": "no sign",
		"x@3": "GPUs are 0 to 2", "x@-1": "neither", "pick(1)": "there is a GPU 1", "pick(1": "pick( without",
		"12z": `"12z" is not a number`, "#": "neither a number nor a name",
	} {
		require.ErrorContains(t, must.Err(eval(text, s)), want, text)
	}
	s.buffer, s.element = nil, -1
	require.ErrorContains(t, must.Err(eval("x", s)), `"x" is unknown here`)
	require.ErrorContains(t, must.Err(eval("i", s)), "i is the number of an element")
}

var large = regexp.MustCompile(`[0-9a-fx]{6}`)

// FuzzCase: a case of any texts is an error, or its run ends.
func FuzzCase(f *testing.F) {
	f.Add("x=f32[4]:i", "x=i*2", "{x@*, u32:7}")
	f.Add("x=ptr[gpus]:x@0,0", "x@1=pick(x,0)", "bf16:1.5e3")
	f.Add("x=s8[(1+1)%5]:-1", "", "x@((rank-1)%gpus)+0x1e+1")
	text := []byte(`.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 x, .param .align 8 .b8 s[24]) { ret; }
`)
	f.Fuzz(func(t *testing.T, buffer, want, arg string) {
		if len(buffer)+len(want)+len(arg) > 1000 || large.MatchString(buffer) || strings.ContainsAny(buffer, "*eE") {
			return // large buffers take long
		}
		c := Case{Name: "k.ptx", Text: text, GPUs: 2, Seeds: 1, Buffers: []string{buffer},
			Launches: []Launch{{Args: []string{arg, arg}}}}
		if want != "" {
			c.Wants = []string{want}
		}
		r, err := Run(t.Context(), c)
		require.Equal(t, err == nil, r != nil)
	})
}
