// All-reduce and reduce-scatter with what serving does next: add a bias and a residual, divide each
// row by its root mean square, and make it narrower. One kernel, on the lines and mailboxes of
// direct.cu; what is said there of halves and epochs holds here.
//
// A row (a token) is whole in one block, so its sum of squares takes one barrier of the block and none of the grid.
// Where rows are few, each is cut into parts, one for a block. The blocks tell each other the sums of their lines in
// words that hold the epoch too: one SM alone would take most of the time. Rows are cut into lines of their own, and a
// line is the same thread's in all rows. Without a share every rank sends its rows to all and finishes all; with a
// share each rank finishes rows of its own, and in a second hop sends the sums, which the others finish too: so each
// row's outputs come from the same bits wherever they are made.
//
// kernels.Norm has the same arithmetic in Go: float32, in order of rank, then bias, then residual,
// rounded once; squares of a thread's words in order, of a line's threads and of lines in trees.
#include "exchange.h"

constexpr u32 both = 2;         // lines of a row that a thread has at once
constexpr u32 most_lines = 576; // of a row
constexpr u32 most_threads = 576;

// NormArgs is engine/grid.normArgs in Go. Of direct, what is about data is not looked at but lines, two
// and torn.
struct NormArgs {
  DirectArgs direct; // lines: of a row
  u64 in, residual;  // rows
  u64 bias, weight;  // a row each; 0: none, as for residual
  u64 sum, normed;   // rows that come out; 0: not wanted
  u64 small, scales; // the normed rows in 8 bits; a float32 for each, where it has a scale of its own
  u64 scale;         // address of the scale of all rows, 0: each has its own
  u64 words;         // what the parts of rows tell each other, for even and odd epochs
  u32 row, rows;     // bytes of a row; how many there are
  u32 share;         // rows that a rank finishes, 0: all
  u32 steps;         // in which a group of threads has both lines
  u32 units, room;   // a unit is a row, or a row of each rank's share; how many a round has
  u32 epsilon, columns; // bits of a float32 each
  u32 more;             // 1: the factor is 1 + weight
  u32 form;             // of small: 1 E4M3, 2 int8
  u32 few;              // lines of a thread, where a block has one row or a part of one; 0: several rows
  u32 parts, part;      // then: parts of a row, and lines of a part
  u32 team;             // 2^16 / parts, rounded up
};

static SHARED float squares[2][most_lines];       // of lines; rows take turns
static SHARED u32 peaks[2][most_threads / warp]; // of warps: bits of the greatest magnitude
extern SHARED Pair kept[];                        // by each thread for itself

// A Place is where a unit's row of one rank lies.
struct Place {
  u32 row, slot; // slot: byte of the mailbox's areas
  bool has;      // there is such a row
  bool tells;    // its first line is sent even if it is empty
};

static DEVICE u32 line_of(u32 step, u32 i) { return (step * both + i) * (threads() / 8) + thread() / 8; }

static DEVICE Cell cell(const NormArgs &a, const Place &p, u32 step, u32 i) {
  u32 line = line_of(step, i), j = thread() % 8;
  bool first = p.tells && step == 0 && i == 0, on = p.has && line < a.direct.lines;
  return {j == 7, first, on, true, line * line_data + 16 * j, p.slot + line * line_bytes + 16 * j};
}

static DEVICE Pair load(const NormArgs &a, const Cell &l, u64 rows, u32 row) {
  return load(l, Transfer{0, rows + (u64)row * a.row, a.row, 0});
}

static DEVICE void store(const NormArgs &a, const Cell &l, u64 rows, u32 row, Pair v) {
  if (rows) store(l, rows + (u64)row * a.row, (s32)a.row - (s32)l.at, v);
}

// Rank_at is the rank k after ours.
static DEVICE u32 rank_at(const NormArgs &a, u32 k) {
  u32 r = a.direct.comm.rank + k;
  return r < ranks(a.direct) ? r : r - ranks(a.direct);
}

// Send sends the rows of a unit, to all ranks or each to the one that finishes it.
static DEVICE void send(const NormArgs &a, u32 unit, Place p, State &state, u64 &epoch, u32 round) {
  const DirectArgs &d = a.direct;
  u32 sets = a.share ? ranks(d) : 2;
#pragma unroll 1
  for (u32 k = 1; k < sets; k++) {
    p.row = unit + (a.share ? a.share * rank_at(a, k) : 0);
    p.has = unit < a.units && p.row < a.rows;
#pragma unroll 1
    for (u32 step = 0; step < a.steps; step++) {
      Pair v[both];
#pragma unroll
      for (u32 i = 0; i < both; i++) v[i] = load(a, cell(a, p, step, i), a.in, p.row);
      loaded(state), loaded(epoch); // as in direct.cu
      if (vote(state.over)) return;
      Round r = round_of(d, hash_of(d.hash, first_number(d.comm, state)), epoch + round);
#pragma unroll
      for (u32 i = 0; i < both; i++) {
        Cell l = cell(a, p, step, i);
        v[i] = sealed(d, l, marked(l, r, v[i]));
#pragma unroll
        for (u32 q = 1; q < most; q++) {
          if (q >= ranks(d)) break;
          if ((l.first || l.on) && (!a.share || q == k)) store_line(d.sends[q].lines + (r.half + l.slot), v[i]);
        }
      }
    }
  }
}

// Receive waits for the lines of each rank in want, as that of exchange.h does for one.
template <u32 count>
static DEVICE bool receive(const DirectArgs &a, const Cell *l, const Round &r, u32 hop, const u32 *want, Pair (*v)[most],
                           Stop &stop) {
  u32 odd = 0;
  syncwarp();
#pragma unroll 1
  for (u32 n = 1;; n++) {
    bool bad[count] = {}, any = false;
#pragma unroll
    for (u32 i = 0; i < count; i++)
#pragma unroll
      for (u32 p = 0; p < most; p++) {
        if (p >= ranks(a)) break;
        if (want[i] >> p & 1) v[i][p] = load_line(a.recvs[p].lines + (hop + r.half + l[i].slot));
      }
#pragma unroll
    for (u32 i = 0; i < count; i++) {
      if (a.torn) unseal(a, l[i], v[i]);
#pragma unroll
      for (u32 p = 0; p < most; p++) {
        if (p >= ranks(a)) break;
        bad[i] |= (want[i] >> p & 1) && v[i][p].y != r.flag;
      }
      any |= bad[i];
    }
    if (!vote(any && l[0].last)) return true;
    if (n % line_polls) continue;
    bool asks = (n / line_polls + (block() * threads() + thread()) / warp) % (blocks() * threads() / warp) == 0;
    bool first = count == 1 || vote(bad[0] && l[0].last); // the others wait until their turn
    Pair w[most];
#pragma unroll
    for (u32 p = 0; p < most; p++) w[p] = first ? v[0][p] : v[count - 1][p];
    missing(a, l[0], r.flag, asks, first ? want[0] : want[count - 1], w, odd, stop);
    if (vote(stop.kind)) return false;
  }
}

// Plus adds a thread's words to its sum.
static DEVICE void plus(float (*sum)[elements], Pair v, bool first) {
  float x[2][elements];
  unpack(v.x, x[0]), unpack(v.y, x[1]);
#pragma unroll
  for (int w = 0; w < 2; w++)
#pragma unroll
    for (int e = 0; e < elements; e++) sum[w][e] = first ? x[w][e] : sum[w][e] + x[w][e];
}

// Rounded is the sum with bias and residual, rounded once.
static DEVICE Pair rounded(const NormArgs &a, float (*sum)[elements], Pair bias, Pair residual) {
  if (a.bias) plus(sum, bias, false);
  if (a.residual) plus(sum, residual, false);
  return {pack<false>(sum[0]), pack<false>(sum[1])};
}

// Total is the sum of all ranks' words, bias and residual, rounded once.
static DEVICE Pair total(const NormArgs &a, const Pair *v, Pair own, Pair bias, Pair residual) {
  float sum[2][elements];
#pragma unroll
  for (u32 p = 0; p < most; p++) {
    if (p >= ranks(a.direct)) break;
    plus(sum, p == a.direct.comm.rank ? own : v[p], p == 0);
  }
  return rounded(a, sum, bias, residual);
}

template <u32 distance> static DEVICE u32 across32(u32 v) {
  u32 w;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(w) : "r"(v), "n"(distance) : "memory");
  return w;
}

template <u32 distance> static DEVICE float plus_across(float v) {
  return v + bits<float>(across32<distance>(bits<u32>(v)));
}

// Squares_of is the sum of squares of a thread's words.
static DEVICE float squares_of(Pair v) {
  float x[2 * elements], sum = 0;
  unpack(v.x, x), unpack(v.y, x + elements);
#pragma unroll
  for (float y : x) sum += y * y;
  return sum;
}

// Line_squares is the sum of squares of a line.
static DEVICE float line_squares(Pair v) {
  float sum = squares_of(v);
  return sum = plus_across<4>(sum), sum = plus_across<2>(sum), plus_across<1>(sum);
}

// Keep keeps a thread's sums for finish, and their squares.
static DEVICE void keep(const NormArgs &a, u32 step, u32 i, u32 turn, Pair s) {
  kept[(step * both + i) * threads() + thread()] = s;
  float sum = line_squares(s);
  u32 line = line_of(step, i);
  if (thread() % 8 == 0 && line < a.direct.lines) squares[turn][line] = sum;
}

// Inverse is what a row is multiplied by, one over its root mean square. sum is of the squares of this lane's lines.
static DEVICE float inverse(const NormArgs &a, float sum) {
  float root, inverse;
  sum = plus_across<16>(sum), sum = plus_across<8>(sum), sum = plus_across<4>(sum);
  sum = plus_across<2>(sum), sum = plus_across<1>(sum);
  sum = sum / bits<float>(a.columns) + bits<float>(a.epsilon);
  asm("sqrt.rn.f32 %0, %1;" : "=f"(root) : "f"(sum));
  asm("rcp.rn.f32 %0, %1;" : "=f"(inverse) : "f"(root));
  return inverse;
}

// Squares_in is the sum of the squares of this lane's lines of a row.
static DEVICE float squares_in(const NormArgs &a, const float *squares) {
  float sum = 0;
#pragma unroll 1
  for (u32 line = thread() % warp; line < a.direct.lines; line += warp) sum += squares[line];
  return sum;
}

// Scaled is a thread's words of a row times the inverse and the weights.
static DEVICE Pair scaled(const NormArgs &a, Pair v, float inverse, Pair weight) {
  float x[2][elements], w[2][elements];
  unpack(v.x, x[0]), unpack(v.y, x[1]), unpack(weight.x, w[0]), unpack(weight.y, w[1]);
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int e = 0; e < elements; e++) {
      x[k][e] *= inverse;
      if (a.weight) x[k][e] *= a.more ? 1 + w[k][e] : w[k][e];
    }
  return {pack<false>(x[0]), pack<false>(x[1])};
}

// Peak is the greatest magnitude of a thread's words, NaNs left out.
static DEVICE u32 peak(Pair v) {
  float x[2 * elements];
  u32 most = 0;
  unpack(v.x, x), unpack(v.y, x + elements);
#pragma unroll
  for (float y : x) {
    u32 m = bits<u32>(y) & 0x7fffffff;
    if (m <= 0x7f800000 && m > most) most = m;
  }
  return most;
}

static DEVICE u32 most_across(u32 most) {
  auto more = [&](u32 m) FORCED { most = m > most ? m : most; };
  more(across32<16>(most)), more(across32<8>(most)), more(across32<4>(most));
  more(across32<2>(most)), more(across32<1>(most));
  return most;
}

// Own_scale stores a row's own scale and gives its inverse.
static DEVICE float own_scale(const NormArgs &a, u32 peak, u32 row, bool stores) {
  float scale = bits<float>(peak) / (a.form == 1 ? 448.f : 127.f);
  scale = scale > 0x1p-40f ? scale : 0x1p-40f;
  if (stores) Access<4>::store(a.scales + 4 * (u64)row, bits<u32>(scale));
  return 1 / scale;
}

// Small is a word's elements times a factor in 8 bits each.
static DEVICE u32 small(const NormArgs &a, u64 w, float factor) {
  float x[4] = {};
  unpack(w, x);
#pragma unroll
  for (float &y : x) y *= factor;
  if (a.form == 1) return float8e4m3::pack(x);
  u32 r = 0;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    s32 n;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(n) : "f"(x[e]));
    n = n < -127 ? -127 : n > 127 ? 127 : n;
    r |= ((u32)n & 0xff) << (8 * e);
  }
  return r;
}

// Store_small stores a thread's words of a row in 8 bits.
static DEVICE void store_small(const NormArgs &a, const Cell &l, u32 row, Pair v, float factor) {
  u64 p = a.small + ((u64)row * a.row + l.at) / TYPE::size;
  s32 left = l.on ? (s32)a.row - (s32)l.at : 0;
  u32 x = small(a, v.x, factor), y = small(a, v.y, factor);
  if (left > 0) Access<elements>::store(p, x);
  if (left > 8 && !l.last) Access<elements>::store(p + elements, y);
}

// Finish makes a row's outputs of the sums that the threads have kept. All threads of the block
// call it, after a barrier.
static DEVICE void finish(const NormArgs &a, const Place &p, u32 turn, const Pair *weight) {
  float factor = inverse(a, squares_in(a, squares[turn])), times;
  bool own = a.small && !a.scale;
  u32 most = 0;
#pragma unroll 1
  for (u32 step = 0; step < a.steps; step++) {
#pragma unroll
    for (u32 i = 0; i < both; i++) {
      Cell l = cell(a, p, step, i);
      Pair &v = kept[(step * both + i) * threads() + thread()];
      Pair w = scaled(a, v, factor, step == 0 ? weight[i] : a.weight ? load(a, l, a.weight, 0) : Pair{});
      store(a, l, a.normed, p.row, w);
      if (a.small) v = w;
      u32 m = own && l.on ? peak(w) : 0;
      most = m > most ? m : most;
    }
  }
  if (!a.small) return;
  if (own) {
    most = most_across(most);
    if (thread() % warp == 0) peaks[turn][thread() / warp] = most;
    barrier();
#pragma unroll 1
    for (u32 i = 0; i < threads() / warp; i++) most = peaks[turn][i] > most ? peaks[turn][i] : most;
    times = own_scale(a, most, p.row, thread() == 0);
  } else {
    times = 1 / bits<float>(Access<4>::load(a.scale));
  }
#pragma unroll 1
  for (u32 n = 0; n < a.steps * both; n++)
    store_small(a, cell(a, p, n / both, n % both), p.row, kept[n * threads() + thread()], times);
}

// One waits for a row's lines and finishes it: with q = 0 one that this rank sums up, otherwise
// one whose sums the rank q after ours has sent. It returns false if the warp has to stop.
static DEVICE bool one(const NormArgs &a, u32 q, const Place &p, const Round &r, bool ok, u32 &turn, const Pair *weight,
                       Stop &stop) {
  const DirectArgs &d = a.direct;
  u32 who = rank_at(a, q), others = ((1u << ranks(d)) - 1) & ~(1u << d.comm.rank), from = q ? 1u << who : others;
  bool norms = a.normed || a.small;
#pragma unroll 1
  for (u32 step = 0; ok && step < a.steps; step++) {
    Cell l[both];
    Pair v[both][most] = {}, own[both] = {}, bias[both] = {}, residual[both] = {};
    u32 want[both];
#pragma unroll
    for (u32 i = 0; i < both; i++) {
      l[i] = cell(a, p, step, i);
      want[i] = l[i].first || l[i].on ? from : 0;
      if (q) continue;
      own[i] = load(a, l[i], a.in, p.row);
      if (a.bias) bias[i] = load(a, l[i], a.bias, 0);
      if (a.residual) residual[i] = load(a, l[i], a.residual, p.row);
    }
    ok = receive<both>(d, l, r, q ? d.second : 0, want, v, stop);
    if (!ok) break;
#pragma unroll
    for (u32 i = 0; i < both; i++) {
      Pair s = q ? Pair{} : total(a, v[i], own[i], bias[i], residual[i]);
#pragma unroll
      for (u32 k = 0; k < most; k++) {
        if (k >= ranks(d)) break;
        if (q && k == who) s = v[i][k];
      }
      if (l[i].last) s.y = 0;
      if (!l[i].on) s = {};
      if (d.two && q == 0) {
        Pair w = sealed(d, l[i], marked(l[i], r, s));
#pragma unroll
        for (u32 k = 1; k < most; k++) {
          if (k >= ranks(d)) break;
          if (l[i].first || l[i].on) store_line(d.sends[k].lines + (d.second + r.half + l[i].slot), w);
        }
      }
      store(a, l[i], a.sum, p.row, s);
      if (!norms) continue;
      keep(a, step, i, turn, s);
    }
  }
  if (!norms) return ok;
  if (stop.kind) report(d.comm, stop); // the block's other warps find out by that
  if (any(!ok)) return false;
  if (p.has) finish(a, p, turn, weight);
  turn ^= 1;
  return true;
}

// Rounds carries out all rounds, or stops. It returns the last epoch.
static DEVICE u64 rounds(const NormArgs &a, u64 epoch, State &state, Stop &stop) {
  const DirectArgs &d = a.direct;
  u32 round = 0, each = a.room / blocks(), slots = a.steps * both * (threads() / 8) * line_bytes, turn = 0;
  bool several = a.units > a.room, tells = several || block() * threads() + thread() < 8;
  auto skips = [&](u32 unit) FORCED { return unit >= a.units && !several; };
  auto slot = [&](u32 i) FORCED { return (block() * each + i) * slots; };
  Pair weight[both] = {};
#pragma unroll 1
  for (u32 done = 0; done < a.units; done += a.room) {
    round++;
    auto unit = [&](u32 i) FORCED { return done + i * blocks() + block(); };
#pragma unroll 1
    for (u32 i = 0; i < each && !skips(unit(i)); i++) send(a, unit(i), {0, slot(i), false, tells}, state, epoch, round);
    if (done == 0) {
      begin(d.comm, state); // while the lines are on their way
      if (a.weight && !vote(state.over)) {
#pragma unroll
        for (u32 i = 0; i < both; i++) weight[i] = load(a, cell(a, {0, 0, true, false}, 0, i), a.weight, 0);
      }
    }
    Round r = round_of(d, hash_of(d.hash, first_number(d.comm, state)), epoch + round);
    bool ok = !vote(state.over);
#pragma unroll 1
    for (u32 q = 0; q < (d.two ? ranks(d) : 1); q++) {
#pragma unroll 1
      for (u32 i = 0; i < each && !skips(unit(i)); i++) {
        u32 row = unit(i) + a.share * rank_at(a, q);
        Place p = {row, slot(i), unit(i) < a.units && row < a.rows, tells};
        if (!one(a, q, p, r, ok, turn, weight, stop)) return epoch + round;
      }
    }
  }
  return epoch + round;
}

// Quick modules have few<2>, whose code is as large as all the rest. In other modules rounds does the same, with lines
// in the same places.
#ifdef RANKS
constexpr bool quick = true;
#else
constexpr bool quick = false;
#endif

static DEVICE void tell(u64 p, u32 v, u64 epoch) { store_relaxed64(p, epoch << 32 | v); }

// Listen gives f each word of an epoch, those of a lane in order. It returns false if all kernels are to end: the warp
// that has found that out reports for whom it waited.
template <class F> static DEVICE bool listen(const NormArgs &a, u64 words, u32 n, u64 epoch, F f) {
  constexpr u32 batch = 5; // a row of 16 KiB has 137 lines
  u32 lane = thread() % warp;
#pragma unroll 1
  for (u32 from = 0; from < n; from += batch * warp) {
    u64 v[batch];
#pragma unroll 1
    for (u32 tries = 1;; tries++) {
      bool bad = false;
#pragma unroll
      for (u32 k = 0; k < batch; k++) {
        u32 i = from + k * warp + lane;
        v[k] = load_relaxed64(words + 8 * (i < n ? i : n - 1));
      }
#pragma unroll
      for (u32 k = 0; k < batch; k++) bad |= (u32)(v[k] >> 32) != (u32)epoch;
      if (!vote(bad)) break;
      if (tries % soon == 0 && vote(over(a.direct.comm))) return false;
    }
#pragma unroll
    for (u32 k = 0; k < batch; k++) {
      if (from + k * warp + lane < n) f((u32)v[k]);
    }
  }
  return true;
}

// Few carries out a round in which a block has one row or a part of one, and a thread so many lines of it, which stay
// in registers. All that is loaded is on its way at once. It returns false if the warp has to stop.
template <u32 count> static DEVICE bool few(const NormArgs &a, State &state, u64 &epoch, Stop &stop) {
  const DirectArgs &d = a.direct;
  u32 team = block() * a.team >> 16, part = block() - team * a.parts, groups = threads() / 8, j = thread() % 8;
  u32 row = team + a.share * d.comm.rank, others = ((1u << ranks(d)) - 1) & ~(1u << d.comm.rank);
  bool has = row < a.rows, norms = a.normed || a.small;
  Cell l[count];
  Pair own[count], sends[count][most], bias[count] = {}, residual[count] = {}, weight[count] = {};
  u32 want[count];
#pragma unroll
  for (u32 i = 0; i < count; i++) {
    u32 n = i * groups + thread() / 8, line = part * a.part + n;
    bool on = has && n < a.part && line < d.lines, first = i == 0 && block() == 0 && thread() < 8;
    l[i] = {j == 7, first, on, true, line * line_data + 16 * j, (block() * count * groups + n) * line_bytes + 16 * j};
    want[i] = first || on ? others : 0;
    own[i] = load(a, l[i], a.in, row);
  }
  if (a.share) {
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(d)) break;
#pragma unroll
      for (u32 i = 0; i < count; i++) sends[i][k] = load(a, l[i], a.in, team + a.share * rank_at(a, k));
    }
  }
#pragma unroll
  for (u32 i = 0; i < count; i++) {
    if (a.residual) residual[i] = load(a, l[i], a.residual, row);
    if (a.weight) weight[i] = load(a, l[i], a.weight, 0);
    if (a.bias) bias[i] = load(a, l[i], a.bias, 0);
  }
  loaded(state), loaded(epoch); // as in direct.cu
  epoch++;
  if (vote(state.over)) return begin(d.comm, state), false;
  Round r = round_of(d, hash_of(d.hash, first_number(d.comm, state)), epoch);
#pragma unroll
  for (u32 i = 0; i < count; i++) {
#pragma unroll
    for (u32 k = 1; k < most; k++) {
      if (k >= ranks(d)) break;
      Pair w = marked(l[i], r, a.share ? sends[i][k] : own[i]);
      if (d.torn) w = sealed(d, l[i], w);
      if (want[i]) store_line(d.sends[k].lines + (r.half + l[i].slot), w);
    }
  }
  begin(d.comm, state);
  Pair v[count][most] = {}, s[count];
  bool ok = receive<count>(d, l, r, 0, want, v, stop);
  u64 words = a.words + 8 * (u64)((u32)(epoch & 1) * a.units + team) * (d.lines + a.parts * (threads() / warp));
  if (ok) {
#pragma unroll
    for (u32 i = 0; i < count; i++) {
      s[i] = total(a, v[i], own[i], bias[i], residual[i]);
      if (l[i].last) s[i].y = 0;
      if (!l[i].on) s[i] = {};
      if (norms) {
        float sum = line_squares(s[i]);
        u32 n = i * groups + thread() / 8, line = part * a.part + n;
        if (j == 0 && l[i].on) {
          if (a.parts > 1) tell(words + 8 * line, bits<u32>(sum), epoch);
          else squares[0][line] = sum;
        }
      }
    }
#pragma unroll
    for (u32 i = 0; i < count; i++) store(a, l[i], a.sum, row, s[i]);
  }
  if (!norms) return ok;
  float sum = 0;
  if (a.parts > 1) {
    if (!ok) return false;
    if (!has) return true;
    if (!listen(a, words, d.lines, epoch, [&](u32 w) FORCED { sum += bits<float>(w); })) return false;
  } else {
    if (stop.kind) report(d.comm, stop); // the block's other warps find out by that
    if (any(!ok)) return false;
    if (!has) return true;
    sum = squares_in(a, squares[0]);
  }
  float factor = inverse(a, sum);
#pragma unroll
  for (u32 i = 0; i < count; i++) {
    s[i] = scaled(a, s[i], factor, weight[i]);
    store(a, l[i], a.normed, row, s[i]);
  }
  if (!a.small) return true;
  float times;
  if (a.scale) {
    times = 1 / bits<float>(Access<4>::load(a.scale));
  } else {
    u32 greatest = 0, warps = threads() / warp;
#pragma unroll
    for (u32 i = 0; i < count; i++) {
      u32 m = l[i].on ? peak(s[i]) : 0;
      greatest = m > greatest ? m : greatest;
    }
    greatest = most_across(greatest);
    auto more = [&](u32 m) FORCED { greatest = m > greatest ? m : greatest; };
    if (a.parts > 1) {
      words += 8 * d.lines;
      if (thread() % warp == 0) tell(words + 8 * (part * warps + thread() / warp), greatest, epoch);
      if (!listen(a, words, a.parts * warps, epoch, more)) return false;
      greatest = most_across(greatest);
    } else {
      if (thread() % warp == 0) peaks[0][thread() / warp] = greatest;
      barrier();
#pragma unroll 1
      for (u32 i = 0; i < warps; i++) more(peaks[0][i]);
    }
    times = own_scale(a, greatest, row, part == 0 && thread() == 0);
  }
#pragma unroll
  for (u32 i = 0; i < count; i++) store_small(a, l[i], row, s[i], times);
  return true;
}

KERNEL(576, 1) void ENTRY(norm)(const NormArgs a) {
  const DirectArgs &d = a.direct;
  Stop stop = {};
  u64 epoch = Access<8>::load(d.epochs + 8 * block());
  State state = look(d.comm);
  bool is_few = a.few == 1 || (a.few == 2 && quick);
  if (a.few == 1) few<1>(a, state, epoch, stop);
  else if (is_few) few<2>(a, state, epoch, stop);
  else epoch = rounds(a, epoch, state, stop);
  if (stop.kind && ((!a.normed && !a.small) || (is_few && a.parts > 1))) report(d.comm, stop);
  barrier();
  if (thread() == 0 && last(d.comm)) end(d.comm, state);
#pragma unroll 1
  for (u32 i = block() + thread() * blocks(); i < copies; i += threads() * blocks())
    Access<8>::store(d.epochs + 8 * i, epoch);
}

#ifndef RANKS
// Rows finishes rows whose contributions lie in this GPU's memory: a.share contributions one after the other, each of
// all rows. Where no direct kernel serves, other collectives have brought them here.
KERNEL(576, 1) void ENTRY(rows)(const NormArgs a) {
  bool norms = a.normed || a.small;
  u32 turn = 0;
#pragma unroll 1
  for (u32 row = block(); row < a.rows; row += blocks()) {
    Place p = {row, 0, true, false};
#pragma unroll 1
    for (u32 step = 0; step < a.steps; step++)
#pragma unroll 1
      for (u32 i = 0; i < both; i++) {
        Cell l = cell(a, p, step, i);
        float sum[2][elements] = {};
#pragma unroll 1
        for (u32 k = 0; k < a.share; k++) plus(sum, load(a, l, a.in + (u64)k * a.rows * a.row, row), k == 0);
        Pair bias = a.bias ? load(a, l, a.bias, 0) : Pair{}, residual = a.residual ? load(a, l, a.residual, row) : Pair{};
        Pair s = rounded(a, sum, bias, residual);
        if (l.last) s.y = 0;
        if (!l.on) s = {};
        store(a, l, a.sum, row, s);
        if (norms) keep(a, step, i, turn, s);
      }
    if (!norms) continue;
    barrier();
    Pair weight[both] = {};
    if (a.weight) {
#pragma unroll
      for (u32 i = 0; i < both; i++) weight[i] = load(a, cell(a, p, 0, i), a.weight, 0);
    }
    finish(a, p, turn, weight);
    turn ^= 1;
  }
}
#endif
