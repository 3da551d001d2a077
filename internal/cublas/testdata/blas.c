// The functions of cuBLASLt that package cublas calls, which check their arguments and multiply nothing.
#include <stddef.h>
#include <stdint.h>

static int64_t live, queued;
static int made[8];
static uint64_t shapes[3][2];
static int layouts;

int cublasLtCreate(void **h) { *h = &live; return 0; }
int cublasLtDestroy(void *h) { return h == &live && live == 0 ? 0 : 7; }
int cublasLtMatmulDescCreate(void **d, int compute, int scale) {
	*d = &made[0];
	live++;
	return compute == 68 && scale == 0 ? 0 : 7;
}
int cublasLtMatmulDescDestroy(void *d) { live--; return d == &made[0] ? 0 : 7; }
int cublasLtMatrixLayoutCreate(void **d, int type, uint64_t rows, uint64_t cols, int64_t ld) {
	if (rows == 13) return 15; // CUBLAS_STATUS_NOT_SUPPORTED
	shapes[layouts % 3][0] = rows;
	shapes[layouts % 3][1] = cols;
	*d = &made[1 + layouts++ % 3];
	live++;
	return type == 14 && ld == (int64_t)rows ? 0 : 7;
}
int cublasLtMatrixLayoutDestroy(void *d) { live--; return d > (void *)&made[0] ? 0 : 7; }
int cublasLtMatmul(void *h, void *desc, const float *alpha, char *a, void *al, char *b, void *bl, const float *beta, char *c, void *cl,
	char *d, void *dl, void *algo, char *ws, size_t n, void *stream) {
	uint64_t m = shapes[0][0], k = shapes[0][1], cols = shapes[1][1];
	if (h != &live || desc != &made[0] || *alpha != 1 || *beta != 0 || al != &made[1] || bl != &made[2] || cl != &made[3] || dl != cl || algo) return 7;
	if (shapes[1][0] != k || shapes[2][0] != m || shapes[2][1] != cols) return 7;
	if (b != a + 2 * m * k || c != b + 2 * k * cols || d != c || ws != c + 2 * m * cols || n != 32 << 20) return 7;
	queued += (int64_t)(intptr_t)stream;
	return 0;
}
int64_t queued_streams(void) { return queued; }
