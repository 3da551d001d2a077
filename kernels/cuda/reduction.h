// The common part of kernels for one data type TYPE and one reduction OP. A kernel
// without them only copies.
#pragma once
#include "ops.h"
#include "types.h"

#ifdef TYPE

using Wide = TYPE::Wide;
using Word = TYPE::Word;

// Scalar is the factor of contributions, from any kernel's arguments.
template <class Args> static DEVICE Wide scalar(const Args &a) {
  if (!OP::scales) return 0;
  return a.scalar ? TYPE::widen(Access<TYPE::size>::load(a.scalar)) : TYPE::scalar(a.value);
}

#else

using Wide = int;

template <class Args> static DEVICE Wide scalar(const Args &) { return 0; }

#endif
