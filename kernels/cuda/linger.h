// A kernel that lingers carries out one operation after the other, as long as the next one is asked for soon enough.
// Between two kernels of one operation each, blocks of a kernel that computes would take the multiprocessors, and keep
// them for its whole time.
//
// The host queues three things for operation n. The caller's stream rings: it writes the bell, and waits until done
// is n. The kernels' own stream waits for that ring, and then has a kernel, which ends at once if an earlier one
// has carried out n, and else carries out n and lingers. The stream runs one kernel after the other, so no two linger
// at once. One thread decides whether the kernel goes on with n or ends before it, and a ring that comes too late
// is the next kernel's.
#pragma once

// Linger is engine/grid.lingerArgs in Go.
struct Linger {
  u64 line;   // address of a line, 0: the kernel carries out one operation, its first argument
  u64 queue;  // address of memory of the host, where RunArgs lie
  u32 at;     // bytes to those of the first operation
  u32 number; // of the first operation
  u32 kind;   // of this kernel
  u32 ns;     // how long it waits for an operation
};

// A Linger's line, between the stream and the blocks, is in device memory. The stream rings for an
// operation when the one before has ended.
namespace line {
constexpr u64 bell = 0;   // 64 bits, from the stream: number of the operation, and in the low half where RunArgs lie
constexpr u64 go = 128;   // 64 bits, from block 0 to the others: the same number, and whether the kernel carries it out
constexpr u64 done = 256; // 32 bits, to the stream: number of the last operation that has ended
constexpr u64 args = 384; // RunArgs, from block 0 to the others: only one block reads the memory of the host
} // namespace line

constexpr u32 none_more = -1;

static SHARED RunArgs now;
static SHARED u32 next; // where block 0 finds the next operation's RunArgs, or none_more

static DEVICE u64 nanoseconds() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

// Reached reports whether a number is n, or one after it.
static DEVICE bool reached(u32 number, u32 n) { return (s32)(number - n) >= 0; }

static DEVICE u32 ended(const Linger &l) {
  u32 n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(l.line + line::done) : "memory");
  return n;
}

// Asked waits for operation n, in one thread of the kernel, and returns where its RunArgs lie; none_more if it does not
// come in time. The time begins when the operation before has ended in all blocks.
static DEVICE u32 asked(const Linger &l, u32 n) {
  u64 since = nanoseconds();
#pragma unroll 1
  for (;;) {
    u64 bell = load_acquire(l.line + line::bell), t = nanoseconds();
    if (reached(bell >> 32, n)) return bell;
    if (!reached(ended(l), n - 1))
      since = t;
    else if (t - since >= l.ns || over(now.comm))
      return none_more;
  }
}

// Load_args copies RunArgs, by some threads of the block.
static DEVICE void load_args(u64 from) {
  u32 i = thread();
  if (i < sizeof(RunArgs) / 8) ((u64 *)&now)[i] = load_relaxed64(from + 8 * i);
}

// Take reads operation n's RunArgs in block 0, and hands them to the other blocks.
static DEVICE void take(const Linger &l, u32 n) {
  u32 i = thread();
  if (next != none_more) load_args(l.queue + next);
  barrier();
  if (next != none_more && i < sizeof(RunArgs) / 8) store_relaxed64(l.line + line::args + 8 * i, ((u64 *)&now)[i]);
  barrier();
  if (i != 0) return;
  if (now.kind && now.kind != l.kind) next = none_more;
  fence_device();
  store_relaxed64(l.line + line::go, (u64)n << 32 | (next != none_more));
}

// Follow waits in the other blocks until block 0 has taken operation n, or ends before it. For the kernel's first
// operation, go may still say that an earlier kernel ended before it: that is not block 0's word.
static DEVICE void follow(const Linger &l, u32 n) {
  if (thread() == 0) {
    u64 go;
    do go = load_acquire(l.line + line::go);
    while (!reached(go >> 32, n) || (n == l.number && !(u32)go));
    next = (u32)go ? 0 : none_more;
  }
  barrier();
  if (next != none_more) load_args(l.line + line::args);
}

// Ends counts the operation as ended in this block, by one thread, and in all of them if this block is the last.
static DEVICE void ends(const Linger &l, u32 n) {
  if (l.line) fence_device(); // what this block has stored comes before the end
  if (!last(now.comm)) return;
  end(now.comm, look(now.comm));
  if (!l.line) return;
  fence();
  store_relaxed(l.line + line::done, n);
}

// Linger carries out the operation a, or all that are asked for. It is called by all threads. All blocks
// find the same at its beginning: the first operation ends only when all have taken part.
static DEVICE void linger(const RunArgs &a, const Linger &l) {
  if (thread() == 0) {
    if (!l.line) now = a;
    next = l.line && reached(ended(l), l.number) ? none_more : l.at;
  }
  barrier();
  if (next == none_more) return;
  barrier();
#pragma unroll 1
  for (u32 n = l.number;; n++) {
    if (l.line) block() == 0 ? take(l, n) : follow(l, n);
    barrier();
    if (next == none_more) return;
    carry(now);
    barrier();
    if (thread() == 0) ends(l, n);
    if (!l.line) return;
    close_turns();
    if (thread() == 0 && block() == 0) next = asked(l, n + 1);
    barrier();
  }
}
