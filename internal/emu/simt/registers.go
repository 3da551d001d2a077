package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// RegistersPerSM is how many registers of 32 bits a multiprocessor has, of any compute
// capability from 5.0 on. They lie in four partitions, each of which serves a quarter of
// the warps, and a warp gets them in pieces of 256.
const RegistersPerSM = 64 << 10

const (
	partitions     = 4
	registerPiece  = 256 / 32 // of a thread
	mostRegisters  = 255      // that a thread can name
	leastRegisters = 16
	ownRegisters   = 8 // for addresses and what lies between two instructions: a guess
)

// registers is an estimate of how many registers a thread of the kernel takes. Those of
// PTX are virtual, and the assembler decides: it needs about as many as hold values at
// the same time, and never takes more than the launch bounds leave for a thread.
func registers(f *ptx.Func, live int) int {
	n := align(live+ownRegisters, registerPiece)
	if f.MaxRegs > 0 {
		n = min(n, f.MaxRegs/registerPiece*registerPiece)
	}
	if threads := f.LaunchBound(); threads > 0 {
		warps := (threads + 31) / 32 * max(f.MinBlocks, 1)
		each := RegistersPerSM / partitions / 32 / ((warps + partitions - 1) / partitions)
		n = min(n, each/registerPiece*registerPiece)
	}
	return max(leastRegisters, min(n, mostRegisters))
}

// pressure is the largest number of 32-bit registers that hold values of the function at
// the same time. Predicates have registers of their own.
func (l *liveness) pressure(regs []ptx.Reg) int {
	words, most := l.widths(regs), 0
	for _, s := range l.before {
		n := 0
		for k, b := range s {
			for ; b != 0; b &= b - 1 {
				n += words[64*k+bits.TrailingZeros64(b)]
			}
		}
		most = max(most, n)
	}
	return most
}

// widths is how many 32-bit registers each register takes, by its number.
func (l *liveness) widths(regs []ptx.Reg) []int {
	words := make([]int, l.count)
	for slot, r := range l.number {
		if r >= 0 && slot < len(regs) && regs[slot].Type != ptx.Pred {
			words[r] = max(1, regs[slot].Type.Bits()/32)
		}
	}
	return words
}
