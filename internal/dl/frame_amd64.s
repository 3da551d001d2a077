//go:build linux && amd64 && !ringo_nogpu

#include "go_asm.h"
#include "textflag.h"

// invoke is void invoke(struct Frame *) in C's calling convention: the first six arguments
// go into registers, the others onto the stack; AX says that none is a float. 56(SP)
// keeps the Frame during the call, as 0(SP) to 40(SP) hold the arguments on the stack.
TEXT invoke(SB), NOSPLIT, $64-0
call:
	MOVQ DI, 56(SP)
	MOVQ DI, R11
	MOVQ (Frame_Args+48)(R11), AX
	MOVQ AX, 0(SP)
	MOVQ (Frame_Args+56)(R11), AX
	MOVQ AX, 8(SP)
	MOVQ (Frame_Args+64)(R11), AX
	MOVQ AX, 16(SP)
	MOVQ (Frame_Args+72)(R11), AX
	MOVQ AX, 24(SP)
	MOVQ (Frame_Args+80)(R11), AX
	MOVQ AX, 32(SP)
	MOVQ (Frame_Args+88)(R11), AX
	MOVQ AX, 40(SP)
	MOVQ (Frame_Args+0)(R11), DI
	MOVQ (Frame_Args+8)(R11), SI
	MOVQ (Frame_Args+16)(R11), DX
	MOVQ (Frame_Args+24)(R11), CX
	MOVQ (Frame_Args+32)(R11), R8
	MOVQ (Frame_Args+40)(R11), R9
	MOVQ Frame_Fn(R11), R11
	XORL AX, AX
	CALL R11
	MOVQ 56(SP), DI
	MOVQ AX, Frame_Result(DI)
	TESTL AX, AX
	JNE  done
	MOVQ Frame_Last(DI), R11
	TESTQ R11, R11
	JEQ  next
	MOVL 0(R11), R11
	TESTL R11, R11
	JNE  done
next:
	MOVQ Frame_Next(DI), DI
	TESTQ DI, DI
	JNE  call
done:
	XORL AX, AX
	RET

GLOBL ·invokeABI0(SB), NOPTR|RODATA, $8
DATA ·invokeABI0(SB)/8, $invoke(SB)
