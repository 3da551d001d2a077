// What exchange.cu does, and how the caller's memory goes into lines and out of them.
#pragma once
#include "ops.h"
#include "pairs.h"
#include "types.h"

constexpr u32 most = 8; // ranks
constexpr u32 copies = 128; // of the epoch, one for each block that there may be

// A Message is what goes from one rank to another, bytes of which lie in memory.
struct Message {
  u64 lines; // in the receiver's mailbox
  u64 memory;
  u32 bytes, unused;
};

// Args is engine/grid.exchangeArgs in Go.
struct Args {
  Comm comm;
  u64 epochs;          // the last epoch, for each block
  Message sends[most]; // to rank + k; [0] is to ourselves
  Message takes[most]; // from rank p, and in the second hop its result
  u64 mine;            // where our message to ourselves, or the result, goes
  u64 scalar, value;   // as for combine
  u32 half;            // bytes of the mailbox's halves
  u32 second;          // from the lines of the first hop to those of the second
  u32 lines;           // of the longest message, at least 1
  u32 room;            // of them a round
  u32 shortest;        // bytes of the shortest message
  u32 to, from;        // bit k: to rank + k goes data; bit p: from rank p comes data
  u32 same;            // 1: all messages are the same
  u32 two;             // 1: the result goes to all ranks
  u32 finish;          // 1: it is divided
  u32 even;            // 2: all memory and lengths are multiples of 8; 1: all but lengths; 0: neither
  u32 unit;            // of copies: all memory and lengths are multiples of it, 1 or 4
};

// Ranks is how many there are. A module may be compiled for a number of them.
static DEVICE u32 ranks(const Args &a) {
#ifdef RANKS
  (void)a;
  return RANKS;
#else
  return a.comm.ranks;
#endif
}

// Words of the caller's memory: left is how many bytes of the message there are
// from p on, and may be negative.

#ifdef TYPE

static DEVICE u64 load_elements(const Args &, u64 p, s32 left) {
  u64 v = 0;
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left; i += TYPE::size) v |= (u64)Access<TYPE::size>::load(p + i) << (8 * i);
  return v;
}

static DEVICE void store_elements(const Args &, u64 p, s32 left, u64 v) {
#pragma unroll 1
  for (s32 i = 0; i < 8 && i < left; i += TYPE::size) Access<TYPE::size>::store(p + i, v >> (8 * i));
}

#else

static DEVICE u64 load_elements(const Args &a, u64 p, s32 left) { return load_word(p, left, a.unit); }
static DEVICE void store_elements(const Args &a, u64 p, s32 left, u64 v) { store_word(p, left, a.unit, v); }

#endif

// A Lane is a thread's place, for one line at a time.
struct Lane {
  bool last;  // of its group
  bool first; // the line is sent even if it is empty
  bool on;    // there is data for the line
  bool whole; // words of all messages are whole and aligned, for all groups
  u32 at;     // byte of the messages
  u32 slot;   // byte of the mailbox's areas
  u64 flag;

  DEVICE s32 left(const Message &m) const { return (s32)m.bytes - (s32)at; }
};

static DEVICE Pair load(const Args &a, const Lane &l, const Message &m) {
  Pair v = {0, l.flag};
  u64 p = m.memory + l.at;
  s32 left = l.on ? l.left(m) : 0;
  if (l.whole) {
    if (left > 0) v.x = Access<8>::load(p);
    if (left > 8 && !l.last) v.y = Access<8>::load(p + 8);
    return v;
  }
  v.x = load_elements(a, p, left);
  if (!l.last) v.y = load_elements(a, p + 8, left - 8);
  return v;
}

static DEVICE void store(const Args &a, const Lane &l, u64 p, s32 left, Pair v) {
  p += l.at;
  if (!l.on) left = 0;
  if (l.whole) {
    if (left > 0) Access<8>::store(p, v.x);
    if (left > 8 && !l.last) Access<8>::store(p + 8, v.y);
    return;
  }
  store_elements(a, p, left, v.x);
  if (!l.last) store_elements(a, p + 8, left - 8, v.y);
}
