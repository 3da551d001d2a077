// Another library of the process, which lends and borrows tensors. It has DLPack's structs as their description says, and
// nothing of this module.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	void *data;
	struct { int32_t type, id; } device;
	int32_t ndim;
	struct { uint8_t code, bits; uint16_t lanes; } dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} tensor;

typedef struct older {
	tensor t;
	void *manager_ctx;
	void (*deleter)(struct older *);
} older;

typedef struct newer {
	struct { uint32_t major, minor; } version;
	void *manager_ctx;
	void (*deleter)(struct newer *);
	uint64_t flags;
	tensor t;
} newer;

static int back; // tensors that were given back

int given_back(void) { return back; }

static void newer_back(newer *m)
{
	back++;
	free(m->manager_ctx);
	free(m);
}

static void older_back(older *m)
{
	back++;
	free(m->manager_ctx);
	free(m);
}

// fill makes a tensor of 2 rows of 3 floats 0 to 5, behind 8 bytes, whose memory is one block with its shape.
static void *fill(tensor *t)
{
	int64_t *block = calloc(1, 4 * sizeof(int64_t) + 8 + 6 * sizeof(float));
	float *data = (float *)((char *)(block + 4) + 8);
	for (int i = 0; i < 6; i++)
		data[i] = i;
	block[0] = 2, block[1] = 3, block[2] = 3, block[3] = 1;
	*t = (tensor){.data = block + 4, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = block, .strides = block + 2, .byte_offset = 8};
	return block;
}

newer *lend_newer(void)
{
	newer *m = calloc(1, sizeof *m);
	m->version.major = 1;
	m->manager_ctx = fill(&m->t);
	m->deleter = newer_back;
	return m;
}

older *lend_older(void)
{
	older *m = calloc(1, sizeof *m);
	m->manager_ctx = fill(&m->t);
	m->deleter = older_back;
	return m;
}

// hostile is a tensor of which one thing is wrong.
newer *hostile(int which)
{
	newer *m = lend_newer();
	tensor *t = &m->t;
	switch (which) {
	case 0: m->version.major = 2; break;
	case 1: t->data = NULL; break;
	case 2: t->device.type = 10; break;
	case 3: t->device = (__typeof__(t->device)){2, -1}; break;
	case 4: t->ndim = -1; break;
	case 5: t->ndim = 1 << 30; break;
	case 6: t->dtype.lanes = 4; break;
	case 7: t->dtype.lanes = 0; break;
	case 8: t->dtype.bits = 4; break;
	case 9: t->dtype.code = 200; break;
	case 10: t->shape = NULL; break;
	case 11: t->shape[0] = -2; break;
	case 12: t->shape[0] = t->shape[1] = INT64_MAX / 2; break;
	case 13: t->strides[0] = 4; break;
	case 14: t->strides[1] = 0; break;
	case 15: t->strides[0] = -3; break;
	case 16: t->strides[0] = 1, t->strides[1] = 2; break;
	case 17: t->byte_offset = UINT64_MAX; break;
	case 18: t->byte_offset = 6; break;
	default: newer_back(m); back--; return NULL;
	}
	return m;
}

// odd is a tensor that is unusual and right.
newer *odd(int which)
{
	newer *m = lend_newer();
	tensor *t = &m->t;
	switch (which) {
	case 0: t->strides = NULL; break;
	case 1: t->shape[0] = 1, t->strides[0] = 77; break; // of a dimension of one nothing is looked at
	case 2: t->shape[0] = 0, t->data = NULL, t->strides[0] = -1; break;
	case 3: t->ndim = 0, t->shape = t->strides = NULL; break;
	case 4: m->flags = 1; break;
	case 5: m->deleter = NULL; break;
	case 6: t->device.type = 3; break;
	}
	return m;
}

typedef struct {
	newer *n;
	older *o;
	int64_t sum;
} job;

static void *use(void *arg)
{
	job *j = arg;
	tensor *t = j->n ? &j->n->t : &j->o->t;
	int64_t n = 1, want = 1;
	float *data = (float *)((char *)t->data + t->byte_offset);
	j->sum = -1;
	if (t->device.type != 1 || t->dtype.code != 2 || t->dtype.bits != 32 || t->dtype.lanes != 1)
		return NULL;
	for (int i = t->ndim - 1; i >= 0; i--) {
		if (t->strides[i] != want)
			return NULL;
		n *= t->shape[i];
		want *= t->shape[i];
	}
	j->sum = 0;
	for (int64_t i = 0; i < n; i++) {
		j->sum += data[i];
		data[i] *= 2;
	}
	if (j->n)
		j->n->deleter(j->n);
	else
		j->o->deleter(j->o);
	return NULL;
}

// borrow adds up the floats of a tensor, doubles them where they are, and gives the tensor back, all on a thread of its own. The sum is -1 if
// something of the tensor is not what it should be.
int64_t borrow(newer *n, older *o)
{
	job j = {n, o, 0};
	pthread_t thread;
	if (pthread_create(&thread, NULL, use, &j))
		return -2;
	pthread_join(thread, NULL);
	return j.sum;
}

static void passed_back(newer *m)
{
	newer *inner = m->manager_ctx;
	back++;
	inner->deleter(inner);
	free(m);
}

// pass borrows a tensor and lends it on, as a library does that has it as an array of its own.
newer *pass(newer *inner)
{
	newer *m = calloc(1, sizeof *m);
	*m = *inner;
	m->manager_ctx = inner;
	m->deleter = passed_back;
	return m;
}

// bytes are the lengths of both structs.
int64_t bytes(void) { return (int64_t)sizeof(older) << 32 | sizeof(newer); }

// twice gives a tensor back two times.
void twice(newer *m)
{
	void (*deleter)(newer *) = m->deleter;
	deleter(m);
	deleter(m);
}
