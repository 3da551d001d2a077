// Messages side by side, part of run.cu: the sends and receives of a group, or the steps
// of a collective in which no step needs another. Messages with the same peer in the
// same direction are a way, and so are copies on the device; a way keeps its order. Each
// lane of a way is a task, and a block may have several. Its reader hands over any slice
// that can be moved, so no message waits for another, even if there are few blocks. But
// all of them have to run at once: each rank deals its tasks out in its own way, and those
// of a block that has not started may be what the peers' running blocks wait for. So there
// are no more blocks than the communicator's share of the GPU has room for.
#pragma once
#include "notes.h"

// MessagesArgs is engine/grid.messagesArgs in Go. The words are first the ways, 2
// words each: number of the end, lanes and Kind; first message and number of messages.
// Then come the messages.
struct MessagesArgs {
  Comm comm;
  u64 ends;
  u64 table; // address of the words, 0: they are in word
  u32 ways, lanes;
  u64 word[448];
};

enum Kind : u32 { receives = 0, sends = 1, copies = 2 };

// A Message has 6 words: its source and destination on this device, 0 if that is a
// peer; its length; the stamp; piece and slice, and in the top bit whether it goes as
// notes, of a piece each.
struct Message {
  u64 src, dst, n, stamp[2];
  u32 piece, slice;
  bool note;
};

static DEVICE u64 word(const MessagesArgs &a, u32 i) { return a.table ? Access<8>::load(a.table + 8 * i) : a.word[i]; }

static DEVICE Message message(const MessagesArgs &a, u32 i) {
  u32 w = 2 * a.ways + 6 * i;
  u64 cut = word(a, w + 5);
  return {word(a, w), word(a, w + 1), word(a, w + 2), {word(a, w + 3), word(a, w + 4)}, (u32)cut, (u32)(cut << 1 >> 33), (bool)(cut >> 63)};
}

// A Task is a lane of a way and how far it has got. It lies in shared memory, with
// its port.
struct Task {
  u32 end, lane, lanes;
  u32 first, left; // messages
  u32 kind;
  u32 round; // of the first message
  u32 came;  // lines of the next note that have arrived
  u64 at; // in its piece
};

// Task_of is task n of all: first come lane 0 of all ways, then lane 1 of all ways.
static DEVICE Task task_of(const MessagesArgs &a, u32 n) {
  u32 way = n % a.ways, lane = n / a.ways;
  u64 end = word(a, 2 * way), messages = word(a, 2 * way + 1);
  Task t = {(u32)end, lane, (u32)(end >> 32) & 0xffff, (u32)messages, (u32)(messages >> 32), (u32)(end >> 48), lane, 0, 0};
  if (lane >= t.lanes) t.left = 0;
  return t;
}

// Settle moves a task to its next slice, or ends it if there is none.
static DEVICE Message settle(const MessagesArgs &a, Task &t) {
  Message m = {};
#pragma unroll 1
  while (t.left) {
    m = message(a, t.first);
    u64 begin = (u64)t.round * m.piece;
    if (begin + t.at < m.n && t.at < m.piece) break;
    if (m.n == 0 && t.round == 0 && t.at == 0) break; // a message of no bytes is sent too
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

// Came reports whether all lines of the next note have arrived, without waiting.
static DEVICE bool came(const Port &p, u64 flag, u64 bytes, u32 &lines) {
#pragma unroll 1
  for (; lines < lines_of(bytes); lines++)
    if (load_relaxed64(p.note(p.next) + lines * line_bytes + line_data) != flag) return false;
  return true;
}

// Another reports whether a message has arrived that is not the expected one.
static DEVICE bool another(Port &p, bool note, u64 flag, u64 bytes, u32 &lines) {
  if (!note) return p.has_note();
  return (p.has_note() || p.has(receiving)) && !came(p, flag, bytes, lines) && lines == 0;
}

static DEVICE void read_messages(const MessagesArgs &a, Task *tasks, u32 count, u32 number, Stop &stop) {
  // Turn, task, and the task that asks the host next: tasks that wait take turns, as each asks for its own peer.
  u32 k = 0, i = 0, ask = 0;
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
          if (ask == (u32)port) ask = i;
          continue;
        }
        idle = 0;
        m.stamp[0] = numbered(m.stamp[0], number);
        u64 at = (u64)t.round * m.piece, left = m.n - at, size = left < m.piece ? left : m.piece;
        u64 bytes = size - t.at < m.slice ? size - t.at : m.slice;
        u64 flag = m.note ? note_flag(m.stamp, bytes, p.next) : 0;
        bool here = t.kind == copies || (flag && t.kind == receives ? came(p, flag, bytes, t.came) : p.has(phase));
        if (!here) {
          bool asks = n >= polls && ask == (u32)port;
          if (n % soon && !asks) continue;
          if (asks) n = 0, ask = i;
          auto other = [&]() FORCED { return t.kind == receives && another(p, m.note, flag, bytes, t.came); };
          give_up(a.comm, asks, {0, phase, p.peer, bytes, p.header(p.next)}, other, stop);
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
      room(k) = next;
    }
    go = give(k);
  }
  leave(k);
}

#ifndef MESSAGES
#define MESSAGES messages
#endif

KERNEL(most_threads, 2) void MESSAGES(const MessagesArgs a) {
  State state = look(a.comm);
  open_turns();
  u32 all = a.ways * a.lanes, count = (all - block() + blocks() - 1) / blocks();
  Ends end_of = (Ends)a.ends;
  Task *tasks = (Task *)(ports + count);
#pragma unroll 1
  for (u32 i = thread(); i < count; i += threads()) {
    Task t = task_of(a, block() + i * blocks());
    tasks[i] = t;
    if (t.left && t.kind != copies) ports[i].open(end_of + t.end, t.lane);
  }
  begin(a.comm, state);
  if (!any(state.over)) {
    if (thread() < movers()) {
      move_all(a.comm, {}, count * (sizeof(Port) + sizeof(Task)));
    } else if (thread() < movers() + warp) {
      Stop stop = {};
      read_messages(a, tasks, count, number_of(a.comm, state), stop);
      if (stop.kind) report(a.comm, stop);
    } else {
      post_all(a.comm);
    }
    barrier();
#pragma unroll 1
    for (u32 i = thread(); i < count; i += threads())
      if (tasks[i].lane < tasks[i].lanes && tasks[i].kind != copies) ports[i].close(end_of + tasks[i].end, tasks[i].lane);
  }
  if (thread() == 0 && last(a.comm)) end(a.comm, look(a.comm));
}

#ifndef BULK

// Wait_note waits, for a whole warp, for the warp's lines of the next note. It returns
// each thread's part of them.
static DEVICE Pair wait_note(const Comm &c, Port &p, const Cell &t, u64 flag, u64 bytes, Stop &stop) {
  u32 warps = threads() / warp;
  bool waits = t.last() && t.line < lines_of(bytes);
  if (vote(stop.kind)) return {};
  syncwarp(); // else some threads may load a line before it arrives, and those with the flag after
#pragma unroll 1
  for (u32 i = 1;; i++) {
    Pair v = {};
    if (t.line < lines_of(bytes)) v = load_line(p.note(p.next) + t.slot());
    if (!vote(waits && v.y != flag)) return v;
    if (i % soon) continue;
    bool asks = i % polls == 0 && (i / polls + thread() / warp) % warps == 0; // the warps take turns
    u32 lines = 0;
    auto other = [&]() FORCED { return another(p, true, flag, bytes, lines); };
    give_up(c, asks, {0, receiving, p.peer, bytes, p.header(p.next)}, other, stop);
    if (vote(stop.kind)) return v;
  }
}

// Notes is the kernel messages for notes alone. It has a block for each task, and all
// run at once. A thread has a Pair of each note, except in the last warp, which releases
// notes. A release must come after earlier kernels' loads from slots: if there were any,
// the last warp does a fence while the others wait.
//
// The first note's data, its port and the state are loaded side by side: no load waits for
// another one that it does not need.
KERNEL(544, 2) void notes(const MessagesArgs a) {
  State state = look(a.comm);
  Stop stop = {0, receiving, 0, 0, 0};
  Task task = task_of(a, block());
  Ends end_of = (Ends)a.ends + task.end;
  Port p;
  p.open(end_of, task.lane);
  bool releases = thread() == threads() - warp, begun = false;
  auto start = [&]() FORCED {
    begun = true;
    loaded(state);
    if (state.over) stop.kind = aborted;
  };
#pragma unroll 1
  while (task.left) {
    Message m = message(a, task.first);
    u64 at = (u64)task.round * m.piece, after = at + (u64)task.lanes * m.piece;
    if (after < m.n) {
      task.round += task.lanes;
    } else { // the message has no more for this lane
      task.first++, task.left--;
      task.round = task.lane;
    }
    if (at && at >= m.n) continue;
    u64 bytes = m.n - at < m.piece ? m.n - at : m.piece;
    Cell t(thread() / 8, bytes);
    if (task.kind == sends) {
      Pair v = t.load(m.src + at);
      bool first = !begun;
      if (first) {
        start();
        if (!stop.kind) p.known = load_acquire(p.seen);
        if ((s64)(p.known - p.needed(sending)) < 0) { // it has to wait: the sign boards show the call meanwhile
          begin(a.comm, state);
          first = false;
        }
      }
      if (!stop.kind) wait(a.comm, p, p.needed(sending), sending, bytes, stop);
      bool goes = !any(stop.kind);
      if (goes) {
        if (thread() == 0) stamp(p.header(p.next), m.stamp, bytes);
        syncwarp();
        if (t.line < lines_of(bytes)) store_line(p.note(p.next) + t.slot(), t.marked(v, note_flag(m.stamp, bytes, p.next)));
      }
      if (first) begin(a.comm, state); // while the lines are on their way
      if (!goes) break;
    } else {
      if (!begun) {
        start();
        begin(a.comm, state);
        if (releases && !stop.kind && load_relaxed64(p.seen)) fence();
      }
      Pair v = wait_note(a.comm, p, t, note_flag(m.stamp, bytes, p.next), bytes, stop);
      if (any(stop.kind)) break;
      t.store(m.dst + at, v);
      if (releases) store_relaxed64(p.post, p.next + 1);
    }
    p.count = ++p.next;
  }
  if (!begun) begin(a.comm, state);
  if (stop.kind && !state.over && thread() % warp == 0) report(a.comm, stop);
  barrier();
  if (thread() != 0) return;
  if (task.lane < task.lanes) p.close(end_of, task.lane);
  if (last(a.comm)) end(a.comm, state);
}

#endif
