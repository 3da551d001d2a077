#!/bin/sh -e
# Compiles the fixtures here with clang 19; run by go generate.
compile() { # architecture, PTX version, name
	clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=$1 -nocudainc -nocudalib -std=c++17 -S -O3 \
		-ffp-contract=off -Xclang -target-feature -Xclang +ptx$2 $3.cu -o - |
		sed '1,/^$/d' >$3.ptx
}
cd "$(dirname "$0")"
compile sm_70 70 loops
compile sm_70 70 control
compile sm_70 70 memory
compile sm_70 70 warp
compile sm_80 70 ampere
compile sm_90 80 hopper
