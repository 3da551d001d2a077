// Times collectives of Gloo over TCP the way ringo bench times its own.
//
//   gloo DIRECTORY COLLECTIVE TYPE OP ROOT WARMUP ITERATIONS MIN_NS MIN_ITERATIONS ERROR COUNT...
//
// The ranks find each other through files in DIRECTORY; RINGO_RANK and
// RINGO_SIZE number them. Output is that of mpi.c, without "end". Operations are
// prepared once and run many times, which is the best case for Gloo.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

using Run = std::function<void()>;
using Reduction = void (*)(void*, const void*, const void*, size_t);

struct Unsupported { std::string what; };

struct Job {
  std::shared_ptr<gloo::rendezvous::Context> context;
  std::string collective, type, op;
  int root;
  long warmup, wanted, least;
  double min_ns;
  bool in_place, errors;

  int rank() const { return context->rank; }
  int size() const { return context->size; }
  bool wide() const {
    return collective == "allgather" || collective == "alltoall" || collective == "gather" || collective == "scatter";
  }
  bool reduces() const { return collective == "allreduce" || collective == "reduce"; }
  bool has_in_place() const { return collective != "alltoall" && collective != "sendrecv"; }
};

template <typename T>
Reduction reduction(const std::string& op) {
  void (*f)(void*, const void*, const void*, size_t) = nullptr;
  if (op == "sum") f = &gloo::sum<T>;
  if (op == "prod") f = &gloo::product<T>;
  if (op == "max") f = &gloo::max<T>;
  if (op == "min") f = &gloo::min<T>;
  if (!f) throw Unsupported{"operator " + op};
  return f;
}

// Makes the operation on count elements per block; the memory must outlive it.
template <typename T>
Run prepare(const Job& j, T* in, T* out, size_t count) {
  const auto& ctx = j.context;
  const int n = j.size(), rank = j.rank();
  if (j.collective == "allreduce") {
    auto o = std::make_shared<gloo::AllreduceOptions>(ctx);
    if (!j.in_place) o->setInput(in, count);
    o->setOutput(out, count);
    o->setReduceFunction(reduction<T>(j.op));
    return [o] { gloo::allreduce(*o); };
  }
  if (j.collective == "reduce") {
    auto o = std::make_shared<gloo::ReduceOptions>(ctx);
    if (!j.in_place) o->setInput(in, count);
    o->setOutput(out, count);
    o->setRoot(j.root);
    o->setReduceFunction(reduction<T>(j.op));
    return [o] { gloo::reduce(*o); };
  }
  if (j.collective == "broadcast") {
    auto o = std::make_shared<gloo::BroadcastOptions>(ctx);
    if (!j.in_place && rank == j.root) o->setInput(in, count);
    o->setOutput(out, count);
    o->setRoot(j.root);
    return [o] { gloo::broadcast(*o); };
  }
  if (j.collective == "allgather") {
    auto o = std::make_shared<gloo::AllgatherOptions>(ctx);
    if (!j.in_place) o->setInput(in, count);
    o->setOutput(out, count * n);
    return [o] { gloo::allgather(*o); };
  }
  if (j.collective == "alltoall") {
    auto o = std::make_shared<gloo::AlltoallOptions>(ctx);
    o->setInput(in, count * n);
    o->setOutput(out, count * n);
    return [o] { gloo::alltoall(*o); };
  }
  if (j.collective == "gather") {
    auto o = std::make_shared<gloo::GatherOptions>(ctx);
    o->setInput(j.in_place && rank == j.root ? out + rank * count : in, count);
    if (rank == j.root) o->setOutput(out, count * n);
    o->setRoot(j.root);
    return [o] { gloo::gather(*o); };
  }
  if (j.collective == "scatter") {
    auto o = std::make_shared<gloo::ScatterOptions>(ctx);
    std::vector<T*> blocks;
    for (int r = 0; r < n; r++) blocks.push_back(in + r * count);
    if (rank == j.root) o->setInputs(blocks, count);
    o->setOutput(j.in_place && rank == j.root ? in + rank * count : out, count);
    o->setRoot(j.root);
    return [o] { gloo::scatter(*o); };
  }
  if (j.collective == "sendrecv" && n > 1) {
    std::shared_ptr<gloo::transport::UnboundBuffer> give = ctx->createUnboundBuffer(in, count * sizeof(T));
    std::shared_ptr<gloo::transport::UnboundBuffer> take = ctx->createUnboundBuffer(out, count * sizeof(T));
    auto timeout = ctx->getTimeout();
    return [=] {
      take->recv((rank + n - 1) % n, 1);
      give->send((rank + 1) % n, 1);
      give->waitSend(timeout);
      take->waitRecv(timeout);
    };
  }
  throw Unsupported{"collective " + j.collective};
}

static double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double loop(const Job& j, const Run& run, long n) {
  gloo::BarrierOptions o(j.context);
  gloo::barrier(o);
  double start = now();
  for (long i = 0; i < n; i++) run();
  return now() - start;
}

static double decide(const Job& j, double x) {
  gloo::BroadcastOptions o(j.context);
  o.setOutput(&x, 1);
  o.setRoot(0);
  gloo::broadcast(o);
  return x;
}

static double combine(const Job& j, double x, Reduction f) {
  gloo::AllreduceOptions o(j.context);
  o.setOutput(&x, 1);
  o.setReduceFunction(f);
  gloo::allreduce(o);
  return x;
}

static double sum(const Job& j, double x) { return combine(j, x, &gloo::sum<double>); }

// Nanoseconds an operation takes, averaged over iterations and ranks.
static double measure(const Job& j, const Run& run, long* iterations) {
  loop(j, run, j.warmup);
  if ((*iterations = j.wanted) == 0) {
    for (long n = 1;; n *= 4) {
      double took = decide(j, loop(j, run, n));
      if (took >= j.min_ns / 8 || n >= 1L << 22) {
        *iterations = std::max(j.least, std::min(1L << 22, long(j.min_ns * n / std::max(took, 1.0))));
        break;
      }
    }
  }
  return sum(j, loop(j, run, *iterations)) / j.size() / *iterations;
}

// The format of T; its mantissa has no bits if T is no float.
template <typename T>
Format format() {
  if (std::is_same<T, float>::value) return {23, -126};
  if (std::is_same<T, double>::value) return {52, -1022};
  if (std::is_same<T, gloo::float16>::value) return {10, -14};
  return {0, 0};
}

static double number(gloo::float16 x) { return gloo::cpu_half2float(x); }
template <typename T>
double number(T x) { return double(x); }

// The error of a sum out of place; false if it is no sum of floats.
template <typename T>
bool deviation(Job j, T* in, T* out, long count, Spread* all) {
  const Format f = format<T>();
  if (!j.errors || !j.reduces() || j.op != "sum" || !f.mantissa) return false;
  for (long i = 0; i < count; i++) in[i] = T(contributed(f, j.rank(), i));
  sum_exactly(f, j.size(), count);
  j.in_place = false;
  loop(j, prepare<T>(j, in, out, count), 1);
  Spread s = {0, 0, 0};
  if (j.collective != "reduce" || j.rank() == j.root)
    for (long i = 0; i < count; i++) compare(&s, f, number(out[i]), i);
  *all = {combine(j, s.max, &gloo::max<double>), sum(j, s.squares), sum(j, s.count)};
  return true;
}

template <typename T>
void rows(Job j, int argc, char** argv, int first, size_t scale) {
  for (int i = first; i < argc; i++) {
    size_t count = size_t(atoll(argv[i])) * scale;
    if (count == 0) continue; // some of Gloo's collectives divide by it
    size_t bytes = count * sizeof(T) * (j.wide() ? j.size() : 1) + 4096;
    void *in, *out;
    if (posix_memalign(&in, 4096, bytes) || posix_memalign(&out, 4096, bytes)) throw std::bad_alloc();
    double us[2] = {-1, -1};
    long iterations = 0;
    for (int form = 0; form <= int(j.has_in_place()); form++) {
      memset(in, 0, bytes);
      memset(out, 0, bytes);
      j.in_place = form;
      long n;
      us[form] = measure(j, prepare<T>(j, static_cast<T*>(in), static_cast<T*>(out), count), &n) / 1e3;
      if (!form) iterations = n;
    }
    Spread all;
    bool has = deviation<T>(j, static_cast<T*>(in), static_cast<T*>(out), count, &all);
    if (j.rank() == 0) {
      printf("row %s %ld %.4f %.4f", argv[i], iterations, us[0], us[1]);
      if (has) printf(" %.6g %.6g", all.max, sqrt(all.squares / std::max(all.count, 1.0)));
      printf("\n");
      fflush(stdout);
    }
    free(in);
    free(out);
  }
}

static int width(const std::string& type) {
  if (type.find("float8") == 0) return 1;
  return type == "bfloat16" || type == "float16" ? 2 : type.find("64") != type.npos ? 8 : type.find("32") != type.npos ? 4 : 1;
}

int main(int argc, char** argv) {
  const char *rank = getenv("RINGO_RANK"), *size = getenv("RINGO_SIZE");
  if (argc < 12 || !rank || !size) {
    fprintf(stderr, "gloo: want RINGO_RANK, RINGO_SIZE and DIRECTORY COLLECTIVE TYPE OP ROOT WARMUP ITERATIONS MIN_NS MIN_ITERATIONS ERROR COUNT...\n");
    return 2;
  }
  try {
    gloo::transport::tcp::attr attr("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[1]);
    Job j;
    j.context = std::make_shared<gloo::rendezvous::Context>(atoi(rank), atoi(size));
    j.context->setTimeout(std::chrono::seconds(60));
    j.context->connectFullMesh(store, device);
    j.collective = argv[2];
    j.type = argv[3];
    j.op = argv[4];
    j.root = atoi(argv[5]);
    j.warmup = atol(argv[6]);
    j.wanted = atol(argv[7]);
    j.min_ns = atof(argv[8]);
    j.least = atol(argv[9]);
    j.errors = atoi(argv[10]);
    j.in_place = false;
    try {
      const std::string& t = j.type;
      if (!j.reduces()) rows<uint8_t>(j, argc, argv, 11, width(t));
      else if (t == "int8") rows<int8_t>(j, argc, argv, 11, 1);
      else if (t == "uint8") rows<uint8_t>(j, argc, argv, 11, 1);
      else if (t == "int32") rows<int32_t>(j, argc, argv, 11, 1);
      else if (t == "uint32") rows<uint32_t>(j, argc, argv, 11, 1);
      else if (t == "int64") rows<int64_t>(j, argc, argv, 11, 1);
      else if (t == "uint64") rows<uint64_t>(j, argc, argv, 11, 1);
      else if (t == "float32") rows<float>(j, argc, argv, 11, 1);
      else if (t == "float64") rows<double>(j, argc, argv, 11, 1);
      else if (t == "float16") rows<gloo::float16>(j, argc, argv, 11, 1);
      else throw Unsupported{"type " + t};
    } catch (const Unsupported& u) {
      if (j.rank() == 0) printf("unsupported Gloo has no %s\n", u.what.c_str());
    }
    gloo::BarrierOptions end(j.context); // nobody closes while others still receive
    gloo::barrier(end);
  } catch (const std::exception& e) {
    fprintf(stderr, "gloo: %s\n", e.what());
    return 1;
  }
}
