//go:build linux && amd64 && !ringo_nogpu

#include "textflag.h"

// void invoke(struct Frame *) in C's calling convention: the first six arguments
// go into registers, the others onto the stack; AX says that none is a float.
TEXT invoke(SB), NOSPLIT, $64-0
call:
	MOVQ DI, 56(SP)
	MOVQ DI, R11
	MOVQ 56(R11), AX
	MOVQ AX, 0(SP)
	MOVQ 64(R11), AX
	MOVQ AX, 8(SP)
	MOVQ 72(R11), AX
	MOVQ AX, 16(SP)
	MOVQ 80(R11), AX
	MOVQ AX, 24(SP)
	MOVQ 88(R11), AX
	MOVQ AX, 32(SP)
	MOVQ 96(R11), AX
	MOVQ AX, 40(SP)
	MOVQ 8(R11), DI
	MOVQ 16(R11), SI
	MOVQ 24(R11), DX
	MOVQ 32(R11), CX
	MOVQ 40(R11), R8
	MOVQ 48(R11), R9
	MOVQ 0(R11), R11
	XORL AX, AX
	CALL R11
	MOVQ 56(SP), DI
	MOVQ AX, 104(DI)
	TESTL AX, AX
	JNE  done
	MOVQ 120(DI), R11
	TESTQ R11, R11
	JEQ  next
	MOVL 0(R11), R11
	TESTL R11, R11
	JNE  done
next:
	MOVQ 112(DI), DI
	TESTQ DI, DI
	JNE  call
done:
	XORL AX, AX
	RET

GLOBL ·invokeABI0(SB), NOPTR|RODATA, $8
DATA ·invokeABI0(SB)/8, $invoke(SB)
