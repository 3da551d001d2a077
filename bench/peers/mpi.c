// Times collectives of an MPI library the way ringo bench times its own.
//
//   mpi COLLECTIVE TYPE OP ROOT WARMUP ITERATIONS MIN_NS MIN_ITERATIONS ERROR COUNT...
//
// For every COUNT (elements of a block) rank 0 prints
//
//   row COUNT ITERATIONS OUT_OF_PLACE_US IN_PLACE_US [MAX_ULP RMS_ULP]
//
// with -1 for a form that does not exist, and errors of sums of floats if ERROR is 1; or one line "unsupported REASON" for
// a type, operator or collective that MPI does not have. The last line is "end".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, root, count, in_place;
static MPI_Datatype type;
static MPI_Op op;
static size_t width; // bytes of an element
static char *in, *out;

static void allreduce(void) {
  MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, type, op, MPI_COMM_WORLD);
}
static void reduce(void) {
  MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : in, out, count, type, op, root, MPI_COMM_WORLD);
}
static void broadcast(void) { MPI_Bcast(out, count, type, root, MPI_COMM_WORLD); }
static void allgather(void) {
  MPI_Allgather(in_place ? MPI_IN_PLACE : in, count, type, out, count, type, MPI_COMM_WORLD);
}
static void reducescatter(void) {
  MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, out, count, type, op, MPI_COMM_WORLD);
}
static void alltoall(void) { MPI_Alltoall(in, count, type, out, count, type, MPI_COMM_WORLD); }
static void gather(void) {
  MPI_Gather(in_place && rank == root ? MPI_IN_PLACE : in, count, type, out, count, type, root, MPI_COMM_WORLD);
}
static void scatter(void) {
  MPI_Scatter(in, count, type, in_place && rank == root ? MPI_IN_PLACE : out, count, type, root, MPI_COMM_WORLD);
}
static void sendrecv(void) {
  MPI_Sendrecv(in, count, type, (rank + 1) % size, 0, out, count, type, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const struct collective {
  const char *name;
  void (*run)(void);
  int reduces, wide, has_in_place;
} collectives[] = {
    {"allreduce", allreduce, 1, 0, 1}, {"reduce", reduce, 1, 0, 1},
    {"broadcast", broadcast, 0, 0, 1}, {"allgather", allgather, 0, 1, 1},
    {"reducescatter", reducescatter, 1, 1, 1}, {"alltoall", alltoall, 0, 1, 0},
    {"gather", gather, 0, 1, 1}, {"scatter", scatter, 0, 1, 1},
    {"sendrecv", sendrecv, 0, 0, 0}, {0},
};

static int find_type(const char *name, int reduces) {
  const struct { const char *name; MPI_Datatype type; size_t width; } types[] = {
      {"int8", MPI_INT8_T, 1},     {"uint8", MPI_UINT8_T, 1},   {"int32", MPI_INT32_T, 4},
      {"uint32", MPI_UINT32_T, 4}, {"int64", MPI_INT64_T, 8},   {"uint64", MPI_UINT64_T, 8},
      {"float32", MPI_FLOAT, 4},   {"float64", MPI_DOUBLE, 8},  {"float16", MPI_DATATYPE_NULL, 2},
      {"bfloat16", MPI_DATATYPE_NULL, 2}, {"float8e4m3", MPI_DATATYPE_NULL, 1},
      {"float8e5m2", MPI_DATATYPE_NULL, 1}, {0},
  };
  for (int i = 0; types[i].name; i++) {
    if (strcmp(name, types[i].name)) continue;
    type = types[i].type;
    width = types[i].width;
    if (type == MPI_DATATYPE_NULL) { // may be moved as integers of the same width
      if (reduces) return 0;
      type = width == 1 ? MPI_UINT8_T : MPI_UINT16_T;
    }
    return 1;
  }
  return 0;
}

static int find_op(const char *name) {
  const struct { const char *name; MPI_Op op; } ops[] = {
      {"sum", MPI_SUM}, {"prod", MPI_PROD}, {"max", MPI_MAX}, {"min", MPI_MIN},
      {"bitand", MPI_BAND}, {"bitor", MPI_BOR}, {"bitxor", MPI_BXOR}, {0},
  };
  for (int i = 0; ops[i].name; i++)
    if (!strcmp(name, ops[i].name)) return op = ops[i].op, 1;
  return 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static double loop(const struct collective *c, long n) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now();
  for (long i = 0; i < n; i++) c->run();
  return now() - start;
}

// Nanoseconds an operation takes, averaged over iterations and ranks.
static double measure(const struct collective *c, long warmup, long *iterations, double min_ns, long least) {
  loop(c, warmup);
  if (*iterations == 0) {
    long n = 1;
    for (;; n *= 4) {
      double took = loop(c, n);
      MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (took >= min_ns / 8 || n >= 1L << 22) {
        n = (long)(min_ns * n / (took > 1 ? took : 1));
        break;
      }
    }
    if (n > 1L << 22) n = 1L << 22;
    *iterations = n < least ? least : n;
  }
  double took = loop(c, *iterations), total;
  MPI_Allreduce(&took, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return total / size / *iterations;
}

// The error of a sum out of place; false if it is no sum of floats.
static int deviation(const struct collective *c, Spread *all) {
  Format f = width == 4 ? (Format){23, -126} : (Format){52, -1022};
  long blocks = c->wide ? size : 1, from = c->wide ? (long)rank * count : 0;
  if (!c->reduces || op != MPI_SUM || (type != MPI_FLOAT && type != MPI_DOUBLE)) return 0;
  for (long j = 0; j < blocks * count; j++) {
    double x = contributed(f, rank, j);
    if (width == 4) ((float *)in)[j] = (float)x;
    else ((double *)in)[j] = x;
  }
  sum_exactly(f, size, blocks * count);
  in_place = 0;
  loop(c, 1);
  Spread s = {0, 0, 0};
  if (strcmp(c->name, "reduce") || rank == root)
    for (long j = 0; j < count; j++) compare(&s, f, width == 4 ? ((float *)out)[j] : ((double *)out)[j], from + j);
  MPI_Allreduce(&s.max, &all->max, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&s.squares, &all->squares, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return 1;
}

// Prints "end", after which the reader need not wait for MPI_Finalize: that hangs now and then with MPICH 4.0
// over TCP, where one rank ends while the other still closes its connections.
static int end(void) {
  if (rank == 0) {
    printf("end\n");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

static int unsupported(const char *what, const char *name) {
  if (rank == 0) printf("unsupported MPI has no %s %s\n", what, name);
  return end();
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 11) {
    fprintf(stderr, "mpi: want COLLECTIVE TYPE OP ROOT WARMUP ITERATIONS MIN_NS MIN_ITERATIONS ERROR COUNT...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const struct collective *c = collectives;
  while (c->name && strcmp(c->name, argv[1])) c++;
  if (!c->name) return unsupported("collective", argv[1]);
  if (!find_type(argv[2], c->reduces)) return unsupported("type", argv[2]);
  if (c->reduces && !find_op(argv[3])) return unsupported("operator", argv[3]);
  root = atoi(argv[4]);
  long warmup = atol(argv[5]), wanted = atol(argv[6]), least = atol(argv[8]);
  double min_ns = atof(argv[7]);
  int errors = atoi(argv[9]);

  for (int i = 10; i < argc; i++) {
    count = atoi(argv[i]);
    size_t bytes = (size_t)count * width * (c->wide ? size : 1) + 4096;
    if (posix_memalign((void **)&in, 4096, bytes) || posix_memalign((void **)&out, 4096, bytes)) {
      fprintf(stderr, "mpi: no memory for %zu bytes\n", bytes);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double us[2] = {-1, -1};
    long iterations = 0;
    for (in_place = 0; in_place <= c->has_in_place; in_place++) {
      memset(in, 0, bytes);
      memset(out, 0, bytes);
      long n = wanted;
      us[in_place] = measure(c, warmup, &n, min_ns, least) / 1e3;
      if (!in_place) iterations = n;
    }
    Spread all;
    int has = errors && deviation(c, &all);
    if (rank == 0) {
      printf("row %d %ld %.4f %.4f", count, iterations, us[0], us[1]);
      if (has) printf(" %.6g %.6g", all.max, sqrt(all.squares / (all.count > 0 ? all.count : 1)));
      printf("\n");
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  return end();
}
