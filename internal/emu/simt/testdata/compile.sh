#!/bin/sh
# Compiles the kernels of this folder to PTX in a folder, this one by default.
# Needs Debian's clang-19.
set -e
cd "$(dirname "$0")"
for k in *.cu; do
	arch=sm_70 ptx=ptx70
	[ "$k" != bulk.cu ] || arch=sm_90 ptx=ptx80
	clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=$arch -nocudainc -nocudalib -std=c++17 -S -O3 \
		-ffp-contract=off -Xclang -target-feature -Xclang +$ptx "$k" -o "${1:-.}/${k%.cu}.ptx"
done
