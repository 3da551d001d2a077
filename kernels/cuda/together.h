// Messages that happen together, whatever the order in which they were asked for:
// sends and receives of a group, or all that a rank has to do in a collective none
// of whose steps needs another; part of run.cu. Those with one peer in one direction
// are a way, and happen in their order, and so are copies on the device; a lane of a
// way is a task, and a block may have several. Its reader hands over whichever slice
// can be moved, so that no message waits for another, whatever their sizes and
// however few blocks run.
#pragma once
#include "notes.h"

// TogetherArgs is engine/grid.togetherArgs in Go. Words are ways, of 2 words:
// number of the end, of lanes and Kind, first message and how many; then messages.
struct TogetherArgs {
  Comm comm;
  u64 ends;
  u64 table; // where words are instead, if not 0
  u32 ways, lanes;
  u64 word[448];
};

enum Kind : u32 { receives = 0, sends = 1, copies = 2 };

// A Message, of 6 words: where it is and where it goes on this device, 0: it only
// comes, or goes, to a peer; its length, its stamp, piece and slice; the top bit of
// that says that it goes as notes, of a piece each.
struct Message {
  u64 src, dst, n, stamp[2];
  u32 piece, slice;
  bool note;
};

static DEVICE u64 word(const TogetherArgs &a, u32 i) { return a.table ? Access<8>::load(a.table + 8 * i) : a.word[i]; }

static DEVICE Message message(const TogetherArgs &a, u32 i) {
  u32 w = 2 * a.ways + 6 * i;
  u64 cut = word(a, w + 5);
  return {word(a, w), word(a, w + 1), word(a, w + 2), {word(a, w + 3), word(a, w + 4)}, (u32)cut, (u32)(cut << 1 >> 33), (bool)(cut >> 63)};
}

// A Task is where a lane of a way is. It lies in shared memory, with its port.
struct Task {
  u32 end, lane, lanes;
  u32 first, left; // messages
  u32 kind;
  u32 round; // of the first message
  u32 came;  // lines of the next note
  u64 at; // in its piece
};

// Task_of is task n of all: those of a lane of all ways, then those of the next.
static DEVICE Task task_of(const TogetherArgs &a, u32 n) {
  u32 way = n % a.ways, lane = n / a.ways;
  u64 end = word(a, 2 * way), messages = word(a, 2 * way + 1);
  Task t = {(u32)end, lane, (u32)(end >> 32) & 0xffff, (u32)messages, (u32)(messages >> 32), (u32)(end >> 48), lane, 0, 0};
  if (lane >= t.lanes) t.left = 0;
  return t;
}

// Settle moves a task to its next slice, or makes it one without messages.
static DEVICE Message settle(const TogetherArgs &a, Task &t) {
  Message m = {};
#pragma unroll 1
  while (t.left) {
    m = message(a, t.first);
    u64 begin = (u64)t.round * m.piece;
    if (begin + t.at < m.n && t.at < m.piece) break;
    if (m.n == 0 && t.round == 0 && t.at == 0) break; // it is sent all the same
    if (begin + m.piece < m.n && t.at) { // the next piece of this lane, if there is one
      t.round += t.lanes;
    } else {
      t.first++, t.left--;
      t.round = t.lane;
    }
    t.at = 0;
  }
  return m;
}

// Came reports whether all lines of the next note have come, without waiting.
static DEVICE bool came(const Port &p, u64 flag, u64 bytes, u32 &lines) {
#pragma unroll 1
  for (; lines < lines_of(bytes); lines++)
    if (load_relaxed64(p.note(p.next) + lines * line_bytes + line_data) != flag) return false;
  return true;
}

// Another reports whether what comes is not the message that we wait for.
static DEVICE bool another(Port &p, bool note, u64 flag, u64 bytes, u32 &lines) {
  if (!note) return p.has_note();
  return (p.has_note() || p.has(receiving)) && !came(p, flag, bytes, lines) && lines == 0;
}

static DEVICE void read_together(const TogetherArgs &a, Task *tasks, u32 count, Stop &stop) {
  u32 k = 0, i = 0; // turn, task
#pragma unroll 1
  for (bool go = true; go; k++) {
    if (thread() % warp == 0) {
      Turn next = {{}, {}, -1, -1, 0, 1};
      u32 idle = 0; // tasks in a row that have nothing to do
#pragma unroll 1
      for (u32 n = 1; idle < count && !stop.kind; n++) {
        Task &t = tasks[i];
        Port &p = ports[i];
        Phase phase = t.kind == sends ? sending : receiving;
        Message m = settle(a, t);
        s16 port = i;
        i = i + 1 < count ? i + 1 : 0;
        if (!t.left) {
          idle++;
          continue;
        }
        idle = 0;
        u64 at = (u64)t.round * m.piece, left = m.n - at, size = left < m.piece ? left : m.piece;
        u64 bytes = size - t.at < m.slice ? size - t.at : m.slice;
        u64 flag = m.note ? note_flag(m.stamp, bytes, p.next) : 0;
        bool here = t.kind == copies || (flag && t.kind == receives ? came(p, flag, bytes, t.came) : p.has(phase));
        if (!here) {
          if (n % polls && (n % soon || !heard(a.comm))) continue;
          if (n % polls || stopped(a.comm)) stop = {aborted, phase, p.peer, bytes, 0};
          else if (!contradicted(a.comm, stop) && t.kind == receives && another(p, m.note, flag, bytes, t.came))
            stop = {mismatch, phase, p.peer, bytes, p.header(p.next)};
          continue;
        }
        at += t.at, t.came = 0;
        next = {{0, m.src ? m.src + at : 0, m.dst ? m.dst + at : 0, 0, bytes, flag}, {m.stamp[0], m.stamp[1]}, -1, -1, 0, 0};
        if (t.kind == receives) next.slice.recv = flag ? p.note(p.next) : p.slot(p.next), next.recv = port;
        if (t.kind == sends) next.slice.send = flag ? p.note(p.next) : p.slot(p.next), next.send = port;
        if (t.kind == sends && flag) stamp(p.header(p.next), m.stamp, bytes);
        if (t.kind != copies) p.next++;
        t.at += m.n ? bytes : 1;
        break;
      }
      turns[k & 3] = next;
    }
    go = give(k);
  }
  arrive(ready(k), threads());
}

KERNEL(576, 2) void together(const TogetherArgs a) {
  u32 all = a.ways * a.lanes, count = (all - block() + blocks() - 1) / blocks();
  const End *ends = (const End *)a.ends;
  Task *tasks = (Task *)(ports + count);
#pragma unroll 1
  for (u32 i = thread(); i < count; i += threads()) {
    Task t = task_of(a, block() + i * blocks());
    tasks[i] = t;
    if (t.left && t.kind != copies) ports[i].open(ends + t.end, t.lane);
  }
  begin(a.comm);
  barrier();
  if (thread() < movers()) {
    move_all({});
  } else if (thread() < movers() + warp) {
    Stop stop = {};
    read_together(a, tasks, count, stop);
    if (stop.kind) report(a.comm, stop);
  } else {
    post_all(a.comm);
  }
  barrier();
#pragma unroll 1
  for (u32 i = thread(); i < count; i += threads())
    if (tasks[i].lane < tasks[i].lanes && tasks[i].kind != copies) ports[i].close(ends + tasks[i].end, tasks[i].lane);
  if (thread() == 0) end(a.comm);
}

// Wait_note has a warp wait for its lines of the next note, and each thread for
// its part of them.
static DEVICE Pair wait_note(const Comm &c, Port &p, const Place &t, u64 flag, u64 bytes, Stop &stop) {
  u32 warps = threads() / warp;
  bool waits = t.last() && t.line < lines_of(bytes);
  together(); // or some threads of a line look before it has come, and those with the flag after
#pragma unroll 1
  for (u32 i = 1;; i++) {
    Pair v = {};
    if (t.line < lines_of(bytes)) v = load_line(p.note(p.next) + t.slot());
    if (!vote(waits && v.y != flag)) return v;
    bool told = i % soon == 0 && vote(heard(c));
    if (!told && (i % polls || (i / polls + thread() / warp) % warps)) continue;
    u32 none = 0;
    if (told || stopped(c)) stop = {aborted, receiving, p.peer, bytes, 0};
    else if (another(p, true, flag, bytes, none)) stop = {mismatch, receiving, p.peer, bytes, p.header(p.next)};
    if (vote(stop.kind)) return v;
  }
}

// Notes is together for short messages alone, of as many blocks as there are
// tasks, all of which run at once. A thread has a Pair of each note, but for the last
// warp, which releases notes. What kernels before have read in slots comes before that:
// where there were any, a fence is done while the others wait.
KERNEL(544, 2) void notes(const TogetherArgs a) {
  Task task = task_of(a, block());
  const End *end_of = (const End *)a.ends + task.end;
  Port p;
  p.open(end_of, task.lane);
  begin(a.comm);
  bool releases = thread() == threads() - warp;
  if (task.kind == receives && releases && load_relaxed64(p.seen)) fence();
  Stop stop = {};
#pragma unroll 1
  for (; task.left; task.first++, task.left--) {
    Message m = message(a, task.first);
    u64 at = (u64)task.lane * m.piece;
    if (at && at >= m.n) continue;
    u64 bytes = m.n - at < m.piece ? m.n - at : m.piece, flag = note_flag(m.stamp, bytes, p.next);
    Place t(thread() / 8, bytes, (m.src | m.dst) + at);
    if (task.kind == sends) {
      Pair v = t.load(m.src + at, flag);
      wait(a.comm, p, p.needed(sending), sending, bytes, stop);
      if (any(stop.kind)) break;
      if (thread() == 0) stamp(p.header(p.next), m.stamp, bytes);
      together();
      if (t.line < lines_of(bytes)) store_line(p.note(p.next) + t.slot(), v);
    } else {
      Pair v = wait_note(a.comm, p, t, flag, bytes, stop);
      if (any(stop.kind)) break;
      t.store(m.dst + at, v);
      if (releases) store_relaxed64(p.post, p.next + 1);
    }
    p.count = ++p.next;
  }
  if (stop.kind && thread() % warp == 0) report(a.comm, stop);
  barrier();
  if (thread() != 0) return;
  if (task.lane < task.lanes) p.close(end_of, task.lane);
  end(a.comm);
}
