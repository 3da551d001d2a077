// The arguments of direct.cu, and the moves between the caller's memory and lines.
#pragma once
#include "lines.h"
#include "reduction.h"

constexpr u32 most = 8; // ranks
constexpr u32 copies = 128; // of the epoch, one for each block that there may be

// A Transfer is the data from one rank to another.
struct Transfer {
  u64 lines;  // where they lie in the receiver's mailbox
  u64 memory; // the caller's, this rank's end of it
  u32 bytes, unused;
};

// DirectArgs is engine/grid.directArgs in Go.
struct DirectArgs {
  Comm comm;
  u64 epochs;           // the last epoch, for each block
  Transfer sends[most]; // to rank + k; [0] is to ourselves
  Transfer recvs[most]; // from rank p, and in the second hop its result
  u64 mine;             // where our own data, or the result, go
  u64 scalar, value;    // as for combine
  u64 hash;             // of the call without its number
  u32 half;             // bytes of the mailbox's halves
  u32 second;           // from the lines of the first hop to those of the second
  u32 lines;            // of the longest message, at least 1
  u32 room;             // lines of a message that fit into a round
  u32 shortest;         // bytes of the shortest message
  u32 to, from;         // bit k: data go to rank + k; bit p: data come from rank p
  u32 same;             // 1: all messages are the same
  u32 two;              // 1: the result goes to all ranks
  u32 finish;           // 1: it is divided
  u32 even;             // 2: all memory and lengths are multiples of 8; 1: all but lengths; 0: neither
  u32 torn;             // 1: lines may arrive in parts and have digests
  u32 early;            // 1: each rank multiplies its own data by its scalar and rounds; 0: all have the same scalar
  u32 unused;
};

// Ranks is the number of ranks. A module may be compiled for one number.
static DEVICE u32 ranks(const DirectArgs &a) {
#ifdef RANKS
  (void)a;
  return RANKS;
#else
  return a.comm.ranks;
#endif
}

// The caller's memory and lengths are multiples of element.
#ifdef TYPE
constexpr int element = TYPE::size;
#else
constexpr int element = 1;
#endif

// A Cell is a thread's 16 bytes of one line, the same for all messages.
struct Cell {
  bool last;  // of its line
  bool first; // the line is sent even if it is empty
  bool on;    // there is data for the line
  bool whole; // words of all messages are whole and aligned, for all threads
  u32 at;     // byte of the messages
  u32 slot;   // byte of the mailbox's areas

  DEVICE s32 left(const Transfer &m) const { return (s32)m.bytes - (s32)at; }
};

// A Round is how the lines of one epoch are told from others.
struct Round {
  u64 flag;
  u32 half; // byte of the mailbox where their half begins
};

static DEVICE Round round_of(const DirectArgs &a, u64 hash, u64 epoch) { return {flag_of(hash, epoch), (u32)(epoch & 1) * a.half}; }

// Marked is a thread's part of a line, with the flag.
static DEVICE Pair marked(const Cell &l, const Round &r, Pair v) { return {v.x, l.last ? r.flag : v.y}; }

// Sealed is a marked line as it travels, with its digest if lines may tear. All threads of the warp call it.
static DEVICE Pair sealed(const DirectArgs &a, const Cell &l, Pair v) {
  if (a.torn) {
    u64 proof = digest(v);
    if (l.last) v.y += proof;
  }
  return v;
}

// Load loads a thread's part of a line, without the flag.
static DEVICE Pair load(const Cell &l, const Transfer &m) {
  Pair v = {};
  u64 p = m.memory + l.at;
  s32 left = l.on ? l.left(m) : 0;
  if (l.whole) {
    if (left > 0) v.x = Access<8>::load(p);
    if (left > 8 && !l.last) v.y = Access<8>::load(p + 8);
    return v;
  }
  v.x = load_word<element>(p, left);
  if (!l.last) v.y = load_word<element>(p + 8, left - 8);
  return v;
}

static DEVICE void store(const Cell &l, u64 p, s32 left, Pair v) {
  p += l.at;
  if (!l.on) left = 0;
  if (l.whole) {
    if (left > 0) Access<8>::store(p, v.x);
    if (left > 8 && !l.last) Access<8>::store(p + 8, v.y);
    return;
  }
  store_word<element>(p, left, v.x);
  if (!l.last) store_word<element>(p + 8, left - 8, v.y);
}
