package fatbin

import "errors"

// errLZ4 is the error of a block that LZ4 does not allow.
var errLZ4 = errors.New("fatbin: PTX packed by LZ4 is damaged")

// unpackLZ4 unpacks a block of LZ4 to at most n bytes: literals and copies of what was unpacked before, by turns.
func unpackLZ4(in []byte, n int) ([]byte, error) {
	out := make([]byte, 0, min(n, 255*len(in)+64)) // a byte unpacks to 255 at most
	length := func(nibble int) (int, bool) {
		for last := byte(255); nibble >= 15 && last == 255; {
			if len(in) == 0 {
				return 0, false
			}
			last, in = in[0], in[1:]
			nibble += int(last)
		}
		return nibble, true
	}
	for len(in) > 0 {
		token := int(in[0])
		in = in[1:]
		literals, ok := length(token >> 4)
		if !ok || literals > len(in) || len(out)+literals > n {
			return nil, errLZ4
		}
		out, in = append(out, in[:literals]...), in[literals:]
		if len(in) == 0 { // the last literals have no copy behind them
			return out, nil
		}
		if len(in) < 2 {
			return nil, errLZ4
		}
		back := int(in[0]) | int(in[1])<<8
		in = in[2:]
		copied, ok := length(token & 15)
		if copied += 4; !ok || back == 0 || back > len(out) || len(out)+copied > n {
			return nil, errLZ4
		}
		for range copied { // which may overlap what it makes
			out = append(out, out[len(out)-back])
		}
	}
	return out, nil
}
