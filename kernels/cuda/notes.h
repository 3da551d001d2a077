// Notes: short messages that go as lines instead of a slot. Each slot of a queue may
// be used either way, and counts the same; the message's length decides. A line's flag
// tells that it has arrived, so the sender needs no fence and no post.
//
// A line's flag has the number of the slot, counted from 1, and a hash of the
// message's stamp and length.
#pragma once
#include "lines.h"
#include "turns.h"

static DEVICE u64 note_flag(const u64 *stamp, u64 n, u64 count) {
  u64 hash = (stamp[0] ^ stamp[1] * 0x9e3779b97f4a7c15 ^ n * 0xff51afd7ed558ccd) * 0xc2b2ae3d27d4eb4f;
  return flag_of(hash, count + 1);
}

static DEVICE u32 lines_of(u64 n) { return n ? (u32)((n + line_data - 1) / line_data) : 1; }

// A Cell is a thread's 16 bytes of one line of a note.
struct Cell {
  u32 line, j; // of a line's 8 threads
  s32 left; // bytes of the message from here on

  DEVICE Cell(u32 line, u64 n) : line(line), j(thread() % 8) { left = (s32)n - (s32)at(); }
  DEVICE u32 at() const { return line * line_data + 16 * j; }       // in memory
  DEVICE u32 slot() const { return line * line_bytes + 16 * j; }    // in the note
  DEVICE bool last() const { return j == 7; }
  DEVICE Pair load(u64 src) const { // without the flag
    u64 p = src + at();
    return {load_word<1>(p, left), last() ? 0 : load_word<1>(p + 8, left - 8)};
  }
  DEVICE Pair marked(Pair v, u64 flag) const { return {v.x, last() ? flag : v.y}; }
  DEVICE void store(u64 dst, Pair v) const {
    u64 p = dst + at();
    store_word<1>(p, left, v.x);
    if (!last()) store_word<1>(p + 8, left - 8, v.y);
  }
};

// Move_note moves a note whose slot this end may use.
static DEVICE void move_note(const Slice &s, u32 width) {
  u32 lines = lines_of(s.n);
#pragma unroll 1
  for (u32 from = 0; from < lines; from += width / 8) {
    Cell t(from + self() / 8, s.n);
    Pair v = {};
    if (s.send) {
      v = t.marked(t.load(s.src), s.flag);
      syncwarp();
      if (t.line < lines) store_line(s.send + t.slot(), v);
    } else if (t.line < lines) {
      v = load_line(s.recv + t.slot());
    }
    if (s.dst) t.store(s.dst, v);
  }
}
