// How far sums are from the exact ones, as in deviation.go. It precedes the source of
// each peer program, in C and in C++.
#include <math.h>
#include <stdint.h>

#define PERIOD 65521 // after which the data of a rank repeat

typedef struct {
  int mantissa, least; // bits; exponent of the smallest normal number
} Format;

typedef struct {
  double max, squares, count; // of errors, in units in the last place
} Spread;

static long double exact[PERIOD];

static double ulp_of(Format f, double x) {
  int e;
  frexp(x, &e);
  return ldexp(1, (e - 1 > f.least ? e - 1 : f.least) - f.mantissa);
}

// A number from 0 to 1, rounded to the format.
static double contributed(Format f, int rank, long j) {
  uint64_t h = (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15 ^ (uint64_t)(j % PERIOD + 1) * 0xd1b54a32d192ed03;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93;
  h = (h ^ h >> 29) * 0xff51afd7ed558ccd;
  double x = ldexp((double)((h ^ h >> 32) >> 11), -53), unit = ulp_of(f, x);
  return x == 0 ? 0 : rint(x / unit) * unit;
}

static void sum_exactly(Format f, int ranks, long count) {
  for (long j = 0; j < PERIOD && j < count; j++) {
    exact[j] = 0;
    for (int r = 0; r < ranks; r++) exact[j] += contributed(f, r, j);
  }
}

static void compare(Spread *s, Format f, double got, long j) {
  long double want = exact[j % PERIOD];
  double e = (double)(fabsl(got - want) / ulp_of(f, (double)want));
  if (e > s->max) s->max = e;
  s->squares += e * e;
  s->count++;
}
