// One rank's column of a schedule, carried out by a grid with a block for each
// lane: rounds, steps, slices, as in package engine. With TYPE and OP it reduces;
// without, it only copies.
#include "reduction.h"
#include "unlike.h"

#ifndef RUN
#define RUN run
#endif

// A Step is sched.Step: what to receive, combine, keep and send.
struct Step {
  s16 recv, send; // ports, -1: nobody
  u8 src, dst;    // buffers
  u16 unused;
  u32 src_chunk, dst_chunk;
};

enum Buffer : u8 { none, in, out, tmp };

// A Layout says where the chunks of a buffer lie, in bytes.
struct Layout {
  u64 at, total, chunk;
};

// RunArgs is engine/grid.runArgs in Go.
struct RunArgs {
  Comm comm;
  u64 steps, ends;        // in device memory
  Layout layout[2];       // of In and Out
  u64 table;              // if not 0: offset and length of each chunk of In, then of Out, 64 bits each
  u64 tmp;                // for each lane and chunk of Tmp a piece
  u64 scalar, value;      // as for combine
  u64 slice, piece;       // bytes, multiples of 16
  u32 step_count, end_count;
  u32 lanes, rounds;
  u32 chunks[2];          // of In and Out in table
  u32 tmp_chunks;
  u32 data, data_chunks;  // the layout that tells how long the chunks of Tmp are, 0 or 1
  u32 kind;               // of the kernels that can carry it out, see linger.h; 0: it combines nothing, and all can
};

// A Part is the piece of a chunk that belongs to a round.
struct Part {
  u64 at, n;
};

static DEVICE Part chunk(const RunArgs &a, u32 layout, u32 chunk) {
  const Layout &l = a.layout[layout];
  if (a.table) {
    u64 entry = a.table + 16 * (chunk + (layout ? a.chunks[0] : 0));
    return {l.at + Access<8>::load(entry), Access<8>::load(entry + 8)};
  }
  u64 off = chunk * l.chunk;
  if (off > l.total) off = l.total;
  u64 n = l.total - off;
  return {l.at + off, n < l.chunk ? n : l.chunk};
}

static DEVICE Part part(const RunArgs &a, Buffer b, u32 c, u32 round) {
  if (b == none) return {0, 0};
  Part p = b == tmp ? chunk(a, a.data, c % a.data_chunks) : chunk(a, b - in, c);
  u64 begin = round * a.piece;
  p.n = p.n > begin ? p.n - begin : 0;
  if (p.n > a.piece) p.n = a.piece;
  p.at = b == tmp ? a.tmp + ((u64)block() * a.tmp_chunks + c) * a.piece : p.at + begin;
  return p;
}

#ifdef TYPE

using Element = Access<TYPE::size>;
constexpr bool scales = OP::scales;
constexpr int words = 16 / sizeof(Word);

struct Scalar {
  Wide value;
  bool on; // for this step
};

// Contributed is an element or a word as its rank contributes it, rounded.
static DEVICE TYPE::Bits contributed(TYPE::Bits x, Scalar s) {
  return OP::scales && s.on ? TYPE::narrow(TYPE::widen(x) * s.value) : x;
}

static DEVICE Word contributed_word(Word w, Scalar s) {
  if (!(OP::scales && s.on)) return w;
  Wide x[TYPE::per_word];
  TYPE::unpack(w, x);
#pragma unroll
  for (int e = 0; e < TYPE::per_word; e++) x[e] *= s.value;
  return TYPE::pack(x);
}

static DEVICE TYPE::Bits combined(TYPE::Bits a, TYPE::Bits b) {
  Wide v = OP::of(TYPE::widen(a), TYPE::widen(b));
  return OP::selects ? TYPE::exact(v) : TYPE::narrow(v);
}

static DEVICE Word combined_word(Word a, Word b) {
  Wide x[TYPE::per_word], y[TYPE::per_word];
  TYPE::unpack(a, x);
  TYPE::unpack(b, y);
#pragma unroll
  for (int e = 0; e < TYPE::per_word; e++) x[e] = OP::of(x[e], y[e]);
  return OP::selects ? TYPE::pack_exact(x) : TYPE::pack(x);
}

// Some moves n vectors that are step bytes apart, the first at byte at.
template <int n> static DEVICE void some(const Slice &s, Scalar k, u64 at, u32 step) {
  Vector<Word> v[n], w[n];
  if (s.recv) {
#pragma unroll
    for (int i = 0; i < n; i++) v[i].load(s.recv + at + i * step);
  }
  if (s.src) {
#pragma unroll
    for (int i = 0; i < n; i++) w[i].load(s.src + at + i * step);
#pragma unroll
    for (int i = 0; i < n; i++)
#pragma unroll
      for (int j = 0; j < words; j++) {
        Word x = contributed_word(w[i].word[j], k);
        v[i].word[j] = s.recv ? combined_word(v[i].word[j], x) : x;
      }
  }
#pragma unroll
  for (int i = 0; i < n; i++) s.store(v[i], at + i * step);
}

// Rest moves all but middle bytes after the first head, by elements.
static DEVICE void rest(const Slice &s, Scalar k, u64 head, u64 middle, u32 width) {
#pragma unroll 1
  for (u64 i = self() * TYPE::size; i + middle < s.n; i += width * TYPE::size) {
    u64 at = i < head ? i : i + middle;
    TYPE::Bits v = 0;
    if (s.recv) v = Element::load(s.recv + at);
    if (s.src) {
      TYPE::Bits x = contributed(Element::load(s.src + at), k);
      v = s.recv ? combined(v, x) : x;
    }
    if (s.dst) Element::store(s.dst + at, v);
    if (s.send) Element::store(s.send + at, v);
  }
}

static DEVICE void move_unlike(const Slice &s, Scalar k, u32 width) {
  auto vectors = [&](auto, const Slice &t, u64 at, u32) FORCED {
    Loose<Word> v, w;
    if (t.recv) v.load(t.recv + at);
    if (t.src) w.load(t.src + at);
    Vector<Word> r;
    if (t.recv) r = v.value();
    if (t.src) {
      Vector<Word> x = w.value();
#pragma unroll
      for (int j = 0; j < words; j++) {
        x.word[j] = contributed_word(x.word[j], k);
        r.word[j] = t.recv ? combined_word(r.word[j], x.word[j]) : x.word[j];
      }
    }
    t.store(r, at);
  };
  unlike<1>(s, width, vectors, [&](const Slice &t, u64 head, u64 middle) FORCED { rest(t, k, head, middle, width); });
}

static DEVICE void move(const Slice &s, Scalar k, u32 width) {
  if (s.all() & 15) return move_unlike(s, k, width);
  constexpr int deep = TYPE::unroll; // vectors of a thread under way; more are no faster
  u64 vectors = s.n / 16, i = 0;
#pragma unroll 1
  for (; deep > 1 && i + deep * width <= vectors; i += deep * width) some<deep>(s, k, 16 * (i + thread()), 16 * width);
#pragma unroll 1
  for (i += thread(); i < vectors; i += width) some<1>(s, k, 16 * i, 0);
  rest(s, k, 0, 16 * vectors, width);
}

#else

#include "notes.h"

constexpr bool scales = false;

struct Scalar {
  int value;
  bool on;
};

// One is a byte.
struct One {
  u8 value;
  DEVICE void load(u64 p) { value = Access<1>::load(p); }
  DEVICE void store(u64 p) const { Access<1>::store(p, value); }
};

template <int n, class V> static DEVICE void some(const Slice &s, u64 at, u32 step) {
  V v[n];
#pragma unroll
  for (int i = 0; i < n; i++) v[i].load((s.recv ? s.recv : s.src) + at + i * step);
#pragma unroll
  for (int i = 0; i < n; i++) s.store(v[i], at + i * step);
}

// Rest moves all but middle bytes after the first head, by bytes.
static DEVICE void rest(const Slice &s, Scalar, u64 head, u64 middle, u32 width) {
#pragma unroll 1
  for (u64 i = self(); i + middle < s.n; i += width) some<1, One>(s, i < head ? i : i + middle, 0);
}

static DEVICE void move(const Slice &s, Scalar k, u32 width) {
  constexpr int deep = 4;
  if (s.flag) return move_note(s, width);
  if (s.all() & 15) {
    auto vectors = [&](auto times, const Slice &t, u64 at, u32 step) FORCED {
      constexpr int n = decltype(times)::n;
      Loose<u32> v[n];
#pragma unroll
      for (int i = 0; i < n; i++) v[i].load((t.recv ? t.recv : t.src) + at + i * step);
#pragma unroll
      for (int i = 0; i < n; i++) t.store(v[i].value(), at + i * step);
    };
    return unlike<2>(s, width, vectors, [&](const Slice &t, u64 head, u64 middle) FORCED { rest(t, k, head, middle, width); });
  }
  u64 vectors = s.n / 16, i = 0;
#pragma unroll 1
  for (; i + deep * width <= vectors; i += deep * width) some<deep, Vector<u32>>(s, 16 * (i + thread()), 16 * width);
#pragma unroll 1
  for (i += thread(); i < vectors; i += width) some<1, Vector<u32>>(s, 16 * i, 0);
  rest(s, k, 0, 16 * vectors, width);
}

#ifndef BULK

// OverArgs is engine/grid.overArgs in Go.
struct OverArgs {
  u64 local;
};

// Over tells the device that all is over, while other kernels may run.
KERNEL(32, 1) void over(const OverArgs a) {
  if (thread() == 0) store_relaxed(a.local + local::over, 1);
}

#endif
#endif

#ifdef BULK
#include "bulk.h"
constexpr u32 most_threads = (storers + 2 + adders) * warp;
#else
#include "movers.h"
constexpr u32 most_threads = 576;
#endif

// Read interprets the rounds of this block's lane.
static DEVICE void read(const RunArgs &a, const Step *steps, u32 number, Stop &stop) {
  u32 k = 0;
  u64 stamp = numbered(a.comm.stamp[0], number);
#pragma unroll 1
  for (u32 round = block() < a.lanes ? block() : a.rounds; round < a.rounds; round += a.lanes) {
#pragma unroll 1
    for (u32 i = 0; i < a.step_count; i++) {
      Step st = steps[i];
      Part src = part(a, (Buffer)st.src, st.src_chunk, round), dst = part(a, (Buffer)st.dst, st.dst_chunk, round);
      u64 n = st.src == none ? dst.n : src.n;
      if (!(scales && a.kind) && st.recv < 0 && src.at == dst.at) st.dst = none; // the data are there
      if ((n == 0 && round > 0) || (st.recv < 0 && st.send < 0 && st.dst == none)) continue;
      u64 at = 0;
#pragma unroll 1
      do {
        u64 bytes = n - at < a.slice ? n - at : a.slice;
        Slice s = {0, st.src == none ? 0 : src.at + at, st.dst == none ? 0 : dst.at + at, 0, bytes, 0};
        if (!hand(a.comm, k++, {s, {stamp, a.comm.stamp[1]}, st.recv, st.send, st.src == in && a.kind, 0}, stop))
          return leave(k);
        at += bytes;
      } while (at < n);
    }
  }
  if (thread() % warp == 0) room(k).last = 1;
  give(k);
  leave(k + 1);
}

// Carry carries out an operation. It is called by all threads of all blocks.
static DEVICE void carry(const RunArgs &a) {
  State state = look(a.comm);
  open_turns();
  Ends end_of = (Ends)a.ends;
  Step *steps = (Step *)(ports + a.end_count);
#pragma unroll 1
  for (u32 i = thread(); i < a.end_count; i += threads()) ports[i].open(end_of + i, block());
#pragma unroll 1
  for (u32 i = thread(); i < a.step_count; i += threads()) {
    const GLOBAL Step &s = ((const GLOBAL Step *)a.steps)[i];
    steps[i] = {s.recv, s.send, s.src, s.dst, 0, s.src_chunk, s.dst_chunk};
  }
  begin(a.comm, state);
  if (any(state.over)) return;
  if (thread() < movers()) {
    move_all(a.comm, {scalar(a), false}, a.end_count * sizeof(Port) + a.step_count * sizeof(Step));
  } else if (thread() < movers() + warp) {
    Stop stop = {};
    read(a, steps, first_number(a.comm, state), stop);
    if (stop.kind) report(a.comm, stop);
  } else {
    post_all(a.comm);
  }
  barrier();
#pragma unroll 1
  for (u32 i = thread(); i < a.end_count; i += threads()) ports[i].close(end_of + i, block());
}

// Two blocks fit on a multiprocessor, so that operations of two communicators, which may
// wait for each other on other devices, can run side by side.
#ifdef BULK
#include "linger.h"
KERNEL(most_threads, 2) void ENTRY(RUN)(const RunArgs a, const Linger l) { linger(a, l); }
#else
KERNEL(most_threads, 2) void ENTRY(RUN)(const RunArgs a) {
  carry(a);
  if (thread() == 0 && last(a.comm)) end(a.comm, look(a.comm));
}
#endif

#ifndef TYPE

#include "messages.h"

#endif
