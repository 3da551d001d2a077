package simt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		op        string // without atom and space
		old, b, c uint64
		want      uint64
	}{
		{"add.u32", 0xffffffff, 3, 0, 2},
		{"add.u64", 1 << 40, 1 << 41, 0, 3 << 40},
		{"and.b32", 0xff, 0xf0f, 0, 0xf},
		{"or.b32", 0xf0, 0xf, 0, 0xff},
		{"xor.b64", 0xff, 0xf << 60, 0, 0xf0000000000000ff},
		{"exch.b32", 1, 2, 0, 2},
		{"exch.b64", 1, 2 << 50, 0, 2 << 50},
		{"cas.b32", 5, 5, 9, 9},
		{"cas.b64", 5, 6, 9, 5},
		{"cas.b16", 5, 5, 9, 9},
		{"inc.u32", 5, 5, 0, 0},
		{"inc.u32", 4, 5, 0, 5},
		{"dec.u32", 0, 5, 0, 5},
		{"dec.u32", 7, 5, 0, 5},
		{"dec.u32", 3, 5, 0, 2},
		{"min.u32", 0xffffffff, 3, 0, 3},
		{"min.s32", 0xffffffff, 3, 0, 0xffffffff},
		{"max.s32", 0xffffffff, 3, 0, 3},
		{"max.u64", 1 << 63, 3, 0, 1 << 63},
		{"max.s64", 1 << 63, 3, 0, 3},
		{"add.f32", 0x3f800000, 0x40000000, 0, 0x40400000},
		{"add.f64", 0x3ff0000000000000, 0x4000000000000000, 0, 0x4008000000000000},
		{"add.f32", 1, 1, 0, 0}, // of subnormals, in global memory
		{"add.noftz.f16", 0x3c00, 0x4000, 0, 0x4200},
		{"add.noftz.f16x2", 0x3c003c00, 0x40000001, 0, 0x42003c00},
		{"add.noftz.bf16x2", 0x3f803f80, 0x40004000, 0, 0x40404040},
	} {
		size, reg := 4, "%r"
		switch {
		case strings.HasSuffix(c.op, "64"):
			size, reg = 8, "%rd"
		case strings.HasSuffix(c.op, "16"):
			size, reg = 2, "%h"
		}
		for _, space := range []string{"", ".global", ".shared"} {
			for _, red := range []bool{false, true} {
				name := "atom" + space + "." + c.op
				third := ""
				if strings.HasPrefix(c.op, "cas") {
					third = fmt.Sprintf(", %s3", reg)
				}
				if red {
					name = "red" + space + "." + c.op
					if third != "" || strings.HasPrefix(c.op, "exch") {
						continue
					}
				}
				t.Run(name, func(t *testing.T) {
					dst := fmt.Sprintf("%s4, ", reg)
					if red {
						dst = ""
					}
					at, prepare := "%rd0", ""
					bits := 8 * size
					if space == ".shared" {
						at = "s"
						prepare = fmt.Sprintf(".shared .align 8 .b8 s[8]; ld.global.b%d %s5, [%%rd0]; st.shared.b%d [s], %s5;", bits, reg,
							bits, reg)
					}
					body := prepare + fmt.Sprintf("mov.b%d %s2, %d; mov.b%d %s3, %d; %s %s[%s], %s2%s;", bits, reg, c.b, bits, reg,
						c.c, name, dst, at, reg, third)
					if space == ".shared" {
						body += fmt.Sprintf("ld.shared.b%d %s5, [s]; st.global.b%d [%%rd0], %s5;", bits, reg, bits, reg)
					}
					if !red {
						body += fmt.Sprintf("st.global.b%d [%%rd0+8], %s4;", bits, reg)
					}
					v := compute(t, options{}, hand(body), "k", 1, []uint32{uint32(c.old), uint32(c.old >> 32), 0, 0}, 5)
					want := c.want
					if c.op == "add.f32" && c.old == 1 && space == ".shared" {
						want = 2
					}
					require.Equal(t, want, (uint64(v[1])<<32|uint64(v[0]))&(1<<bits-1))
					if !red {
						require.Equal(t, c.old, uint64(v[3])<<32|uint64(v[2]))
					}
				})
			}
		}
	}
}
