// A network plugin for tests, over TCP on loopback. It is strict: what NCCL does not promise
// to do it does not allow, and net_test_faults counts it. A send waits until the receiver has
// posted a receive. VERSION chooses the table.
//
// It can fail and delay on purpose: net_test_set, or RINGO_TEST_NET="CALL[@RANK]" and
// RINGO_TEST_NET_DELAY=N in the environment, where ranks are told apart by RINGO_RANK.
#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 11
#endif

static log_function say;
static atomic_int faults, objects, inits, dmabufs; // dmabufs: that were registered
static char failing[32], lying[32];
static long lie;
static int code = SYSTEM_ERROR;
static atomic_int blocking, blocked;
static int passes, delay, max_recvs = 1, max_comms = 1000, kinds = HOST, offload, flushing;
static size_t max_bytes;

// net_test_set has the call of a name fail after so many that pass, and everything answer "not
// yet" so many times.
void net_test_set(const char *call, int after, int times) {
	snprintf(failing, sizeof failing, "%s", call);
	passes = after, delay = times;
}
// net_test_block has the call of a name block, after so many that pass, until 0 is given; net_test_blocked is how many do.
void net_test_block(int on) { blocking = on; }
int net_test_blocked(void) { return blocked; }
// net_test_code has calls fail with another result.
void net_test_code(int result) { code = result; }
// net_test_lie has the call of a name succeed and give something that cannot be.
void net_test_lie(const char *call, long what) { snprintf(lying, sizeof lying, "%s", call), lie = what; }
static int lies(const char *call) { return !strcmp(call, lying); }
void net_test_device(int recvs, int comms, int memory, int type, size_t bytes) {
	max_recvs = recvs, max_comms = comms, kinds = memory, offload = type, max_bytes = bytes;
}
// net_test_flush says how kernels come to see what was received into a GPU's memory: by a flush (0),
// without one, which is a fault (1), by a flush that getProperties asks for (2).
void net_test_flush(int mode) { flushing = mode; }
int net_test_faults(void) { return faults; }
int net_test_objects(void) { return objects; } // contexts, comms and registrations that are open
int net_test_dmabufs(void) { return dmabufs; } // how many were registered

static result fault(const char *what) {
	faults++;
	fprintf(stderr, "net.c: %s\n", what);
	if (say) say(LOG_WARN, ~0ul, __FILE__, __LINE__, "NET/Test : %s", what);
	return INVALID_USAGE;
}

static __thread int failed;
static int fails(const char *call) {
	if (strcmp(call, failing)) return 0;
	if (passes-- > 0) return 0;
	if (blocking) {
		for (blocked++; blocking;) usleep(1000);
		return blocked--, 0;
	}
	if (say) say(LOG_WARN, ~0ul, __FILE__, __LINE__, "NET/Test : %s of %d passed %ld%% %.1f %s", call, VERSION, 99l, 0.5, "on purpose");
	return 1;
}
#define MAY_FAIL(call) do { if (fails(call)) return code; } while (0)
#define MAY_FAIL_WITH(call, out) do { if (fails(call)) return *(out) = (void *)8, code; } while (0) // what no one may use

enum kind { CONTEXT = 0x11223300, LISTENER, SENDER, RECEIVER, REGISTRATION };

typedef struct { uint32_t magic, tag; uint64_t size; } header;

typedef struct comm comm;
typedef struct {
	comm *comm;
	int used, n, done, waits;
	char *target, *seen; // memory of a GPU that data[0] stands for until a flush, and where it is
	char *data[MAX_RECVS];
	size_t sizes[MAX_RECVS];
	int tags[MAX_RECVS], filled[MAX_RECVS], got[MAX_RECVS];
	header head;
} request;

struct comm {
	enum kind kind;
	int fd, dev, waits, credits;
	atomic_int entered;
	request requests[MAX_REQUESTS], flushes[MAX_REQUESTS];
	int outstanding;       // of both
	uint64_t begun, ended; // requests, by number
	size_t moved;          // bytes of what is on its way, its header included
	header head;           // that is being received
	int part;              // where its payload goes
	struct { char *from, *to, *seen; size_t size; } unseen[MAX_REQUESTS]; // received, not flushed
};

// map is where this process sees data: there, or where it has mapped the file.
typedef struct { enum kind kind; comm *owner; char *data, *map; size_t size, head; int memory, mapped; } registration;
typedef struct { enum kind kind; } context;

// What a handle holds: where the listener is, and, at the dialler, the state of the connect.
typedef struct { uint32_t magic; uint16_t port; int dev, fd, waits; void *self; } handle;
_Static_assert(sizeof(handle) <= HANDLE_BYTES, "handle");

static comm *new_comm(enum kind kind, int fd, int dev) {
	comm *c = calloc(1, sizeof *c);
	c->kind = kind, c->fd = fd, c->dev = dev;
	objects++;
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return c;
}

// enter is true if the caller may use the comm: nobody else does.
static int enter(comm *c, enum kind kind) {
	if (!c || c->kind != kind) return fault("no such comm"), 0;
	if (atomic_fetch_add(&c->entered, 1)) return fault("two threads use a comm at once"), 0;
	return 1;
}
static void leave(comm *c) { atomic_fetch_sub(&c->entered, 1); }

#if VERSION >= 11
static result net_init(void **ctx, uint64_t id, config *cfg, log_function log, profile_function profile) {
	if (!profile || !cfg || cfg->trafficClass != -1) return fault("init without profiler or traffic class");
	if (profile(0, 0, 0, 0, 0)) return fault("the profiler failed");
	context *c = calloc(1, sizeof *c);
	c->kind = CONTEXT;
	objects++;
	*ctx = c;
#elif VERSION == 10
static result net_init(log_function log, profile_function profile) {
	if (!profile || profile(0, 0, 0, 0, 0)) return fault("no profiler");
#else
static result net_init(log_function log) {
#endif
	say = log;
	inits++;
	if (VERSION < 11 && inits > 1) return fault("init twice");
	const char *e = getenv("RINGO_TEST_NET"), *at = e ? strchr(e, '@') : 0, *rank = getenv("RINGO_RANK");
	if (e && (!at || (rank && !strcmp(at + 1, rank)))) snprintf(failing, sizeof failing, "%.*s", at ? (int)(at - e) : 31, e);
	if ((e = getenv("RINGO_TEST_NET_DELAY"))) delay = atoi(e);
	if ((e = getenv("RINGO_TEST_NET_DMABUF"))) kinds = HOST | DMABUF, flushing = !strcmp(e, "ordered"); // for GPUs that see in order what comes
	MAY_FAIL("init");
	if (lies("init")) say(LOG_WARN, ~0ul, __FILE__, __LINE__, "%0*d\x1b[2J%.9999999s\n%500000.2f", 900000, 7, "text", 1.5);
	say(LOG_INFO, ~0ul, __FILE__, __LINE__, "NET/Test : version %d, %s, %u devices, 0x%lx, %5.2f GB/s\n", VERSION, "over loopback", 2u, 0xabcdeful, 1.25);
	return SUCCESS;
}

static result net_devices(int *n) {
	MAY_FAIL("devices");
	*n = lies("devices") ? (int)lie : 2;
	return SUCCESS;
}

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
static result net_properties(int dev, CAT(properties, VERSION) *p) {
	MAY_FAIL("getProperties");
	if (dev < 0 || dev > 1) return fault("no such device");
	static char *names[] = {"test0", "test1"}, *paths[] = {"/sys/devices/test0", "/sys/devices/test1"}, odd[10000];
	memset(p, 0, sizeof *p);
	p->name = names[dev], p->pciPath = paths[dev], p->guid = 7 + dev, p->ptrSupport = kinds;
	p->speed = 10000, p->port = 1, p->latency = 1.5, p->maxComms = max_comms, p->maxRecvs = max_recvs, p->netDeviceType = offload;
#if VERSION >= 9
	p->vProps.ndevs = 1, p->vProps.devs[0] = dev, p->maxP2pBytes = max_bytes, p->forceFlush = flushing == 2;
#endif
	if (lies("getProperties")) {
		memset(odd, 'x', sizeof odd - 1);
		memcpy(odd, "\x1b[2J\n\xff", 6);
		p->name = odd, p->pciPath = odd, p->speed = p->maxComms = lie;
#if VERSION >= 9
		p->maxP2pBytes = lie;
#endif
	}
	return SUCCESS;
}

#if VERSION >= 11
static int no_context(void *ctx) { return !ctx || ((context *)ctx)->kind != CONTEXT; }
static result net_listen(void *ctx, int dev, void *h, void **out) {
	if (no_context(ctx)) return fault("listen without context");
#else
static result net_listen(int dev, void *h, void **out) {
#endif
	MAY_FAIL_WITH("listen", out);
	if (lies("listen")) return *out = 0, SUCCESS;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	if (fd < 0 || bind(fd, (void *)&a, sizeof a) || listen(fd, 16) || getsockname(fd, (void *)&a, &len)) return SYSTEM_ERROR;
	comm *c = new_comm(LISTENER, fd, dev);
	*(handle *)h = (handle){.magic = LISTENER, .port = ntohs(a.sin_port), .dev = dev, .fd = -1};
	*out = c;
	return SUCCESS;
}

#if VERSION >= 11
static result net_connect(void *ctx, int dev, void *opaque, void **out, device_handle **d) {
	if (no_context(ctx)) return fault("connect without context");
#elif VERSION == 10
static result net_connect(int dev, config *cfg, void *opaque, void **out, device_handle **d) {
	if (!cfg || cfg->trafficClass != -1) return fault("connect with a traffic class");
#else
static result net_connect(int dev, void *opaque, void **out, device_handle **d) {
#endif
	MAY_FAIL_WITH("connect", out);
	handle *h = opaque;
	*out = 0;
	if (!d || *d) return fault("connect with an offload");
	if (lies("connect")) *d = (void *)8;
	if (h->magic != LISTENER || h->dev != dev) return fault("connect to no listener of this device");
	if (h->self && h->self != h) return fault("the handle was moved between two calls of connect");
	h->self = h;
	if (h->waits++ < delay) return SUCCESS;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (h->fd < 0) h->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connect(h->fd, (void *)&a, sizeof a) && errno != EISCONN) {
		if (errno == EINPROGRESS || errno == EALREADY) return SUCCESS;
		close(h->fd);
		h->fd = -1;
		return REMOTE_ERROR;
	}
	*out = new_comm(SENDER, h->fd, dev);
	return SUCCESS;
}

static result net_accept(void *listener, void **out, device_handle **d) {
	MAY_FAIL_WITH("accept", out);
	comm *l = listener;
	*out = 0;
	if (!d || *d) return fault("accept with an offload");
	if (lies("accept")) *d = (void *)8;
	if (!enter(l, LISTENER)) return INVALID_USAGE;
	if (l->waits++ >= delay) {
		int fd = accept4(l->fd, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) *out = new_comm(RECEIVER, fd, l->dev);
		else if (errno != EAGAIN) return leave(l), SYSTEM_ERROR;
	}
	leave(l);
	return SUCCESS;
}

static result net_reg(void *c, void *data, size_t size, int kind, void **out) {
	MAY_FAIL_WITH("regMr", out);
	comm *owner = c;
	if (!owner || (owner->kind != SENDER && owner->kind != RECEIVER)) return fault("regMr for no comm");
	if (!(kind & kinds) || (kind != HOST && kind != CUDA)) return fault("regMr of a kind of memory that the device does not take");
	registration *r = calloc(1, sizeof *r);
	*r = (registration){.kind = REGISTRATION, .owner = owner, .data = data, .map = data, .size = size, .memory = kind};
	objects++;
	*out = r;
	return SUCCESS;
}
static result net_reg_dmabuf(void *c, void *data, size_t size, int kind, uint64_t offset, int fd, void **out) {
	MAY_FAIL_WITH("regMrDmaBuf", out);
	comm *owner = c;
	struct stat file;
	if (!owner || (owner->kind != SENDER && owner->kind != RECEIVER)) return fault("regMrDmaBuf for no comm");
	if (!(kinds & DMABUF) || kind != CUDA) return fault("regMrDmaBuf, which the device does not support, or of another kind of memory");
	if (!data || !size || fstat(fd, &file) || offset + size > (uint64_t)file.st_size) return fault("regMrDmaBuf of what is not in the file");
	size_t head = offset % getpagesize();
	char *map = mmap(0, head + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset - head);
	if (map == MAP_FAILED) return fault("regMrDmaBuf of a file that cannot be mapped");
	registration *r = calloc(1, sizeof *r);
	*r = (registration){.kind = REGISTRATION, .owner = owner, .data = data, .map = map + head, .size = size, .head = head, .memory = kind, .mapped = 1};
	objects++;
	dmabufs++;
	*out = r;
	return SUCCESS;
}
static result net_dereg(void *c, void *mr) {
	MAY_FAIL("deregMr");
	registration *r = mr;
	if (!r || r->kind != REGISTRATION || r->owner != c) return fault("deregMr of no registration of the comm");
	if (r->mapped) munmap(r->map - r->head, r->head + r->size);
	r->kind = 0;
	objects--;
	free(r);
	return SUCCESS;
}

// seen is where this process sees registered data.
static char *seen(registration *r, void *data) { return r->map + ((char *)data - r->data); }
static int covers(registration *r, comm *c, void *data, size_t n) {
	return r && r->kind == REGISTRATION && r->owner == c && (char *)data >= r->data && (char *)data + n <= r->data + r->size;
}

// begin is a free request, or NULL if as many as may be are outstanding.
static request *begin(comm *c) {
	request *r = &c->requests[c->begun % MAX_REQUESTS];
	if (r->used || c->outstanding == MAX_REQUESTS) return 0;
	*r = (request){.comm = c, .used = 1};
	c->begun++;
	c->outstanding++;
	return r;
}
// begin_flush is that for a flush, which waits for no receive.
static request *begin_flush(comm *c) {
	if (c->outstanding == MAX_REQUESTS) return 0;
	request *r = c->flushes;
	while (r->used) r++;
	*r = (request){.comm = c, .used = 1, .n = 1, .done = 1};
	c->outstanding++;
	return r;
}

// send_some and receive_some carry the oldest requests on. They return the bytes that moved, or -1.
static ssize_t some(ssize_t n) {
	if (n > 0) return n;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}
static result send_on(comm *c) {
	while (c->ended < c->begun) {
		request *r = &c->requests[c->ended % MAX_REQUESTS];
		ssize_t n;
		if (c->moved < sizeof r->head) n = some(send(c->fd, (char *)&r->head + c->moved, sizeof r->head - c->moved, MSG_NOSIGNAL | MSG_DONTWAIT));
		else if (r->sizes[0] == 0) n = 0;
		else n = some(send(c->fd, r->data[0] + c->moved - sizeof r->head, r->sizes[0] - (c->moved - sizeof r->head), MSG_NOSIGNAL | MSG_DONTWAIT));
		if (n < 0) return REMOTE_ERROR;
		c->moved += n;
		if (c->moved == sizeof r->head + r->sizes[0]) c->moved = 0, c->ended++, r->done = 1;
		else if (n == 0) break;
	}
	return SUCCESS;
}
static result receive_on(comm *c) {
	while (c->ended < c->begun) {
		request *r = &c->requests[c->ended % MAX_REQUESTS];
		ssize_t n = 0;
		if (c->moved < sizeof c->head) {
			n = some(recv(c->fd, (char *)&c->head + c->moved, sizeof c->head - c->moved, MSG_DONTWAIT));
			if (n < 0) return REMOTE_ERROR;
			if (n == 0) break;
			c->moved += n;
			if (c->moved < sizeof c->head) continue;
			if (c->head.magic != SENDER) return fault("broken stream");
			for (c->part = 0; c->part < r->n && (r->filled[c->part] || r->tags[c->part] != (int)c->head.tag); c->part++);
			if (c->part == r->n) return fault("a message whose tag no receive has");
			if (c->head.size > r->sizes[c->part]) return fault("a message longer than the receive");
		}
		size_t have = c->moved - sizeof c->head;
		if (have < c->head.size) {
			n = some(recv(c->fd, r->data[c->part] + have, c->head.size - have, MSG_DONTWAIT));
			if (n < 0) return REMOTE_ERROR;
			if (n == 0) break;
			c->moved += n;
		}
		if (c->moved - sizeof c->head < c->head.size) continue;
		r->filled[c->part] = 1, r->got[c->part] = c->head.size, c->moved = 0;
		int all = 1;
		for (int i = 0; i < r->n; i++) all &= r->filled[i];
		if (!all) continue;
		r->done = 1, c->ended++;
		if (r->target && r->got[0] == 0) free(r->data[0]); // nothing to flush
		else if (r->target) {
			int i = 0;
			while (i < MAX_REQUESTS && c->unseen[i].from) i++;
			if (i == MAX_REQUESTS) return fault("too many receives were not flushed");
			c->unseen[i].from = r->data[0], c->unseen[i].to = r->target, c->unseen[i].seen = r->seen, c->unseen[i].size = r->got[0];
		}
	}
	return SUCCESS;
}

static result send_it(void *opaque, void *data, size_t size, int tag, void *mr, void **out) {
	comm *c = opaque;
	*out = 0;
	MAY_FAIL_WITH("isend", out);
	if (!enter(c, SENDER)) return INVALID_USAGE;
	result res = SUCCESS;
	char credits[64];
	ssize_t n = recv(c->fd, credits, sizeof credits, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN)) res = REMOTE_ERROR;
	if (n > 0) c->credits += n;
	if (!covers(mr, c, data, size)) res = fault("isend of memory that is not registered");
	if (!res && c->waits++ >= delay && c->credits > 0) {
		request *r = begin(c);
		if (!r) res = fault("more sends than allowed");
		else {
			c->credits--, c->waits = 0;
			r->n = 1, r->data[0] = seen(mr, data), r->sizes[0] = size, r->tags[0] = tag;
			r->head = (header){SENDER, tag, size};
			*out = r;
			res = send_on(c);
		}
	}
	leave(c);
	return res;
}

static result receive_it(void *opaque, int parts, void **data, size_t *sizes, int *tags, void **mrs, void **out) {
	comm *c = opaque;
	*out = 0;
	MAY_FAIL_WITH("irecv", out);
	if (parts < 1 || parts > max_recvs || parts > MAX_RECVS) return fault("more receives in a group than the device takes");
	if (!enter(c, RECEIVER)) return INVALID_USAGE;
	result res = SUCCESS;
	for (int i = 0; i < parts; i++)
		if (!covers(mrs[i], c, data[i], sizes[i])) res = fault("irecv into memory that is not registered");
	if (!res && c->waits++ >= delay) {
		request *r = begin(c);
		if (!r) res = fault("more receives than allowed");
		else {
			c->waits = 0, r->n = parts;
			for (int i = 0; i < parts; i++) r->data[i] = seen(mrs[i], data[i]), r->sizes[i] = sizes[i], r->tags[i] = tags[i];
			if (((registration *)mrs[0])->memory == CUDA && flushing != 1) r->target = data[0], r->seen = r->data[0], r->data[0] = malloc(sizes[0] + 1);
			*out = r;
			char credits[MAX_RECVS] = {0};
			if (send(c->fd, credits, parts, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE && errno != ECONNRESET) res = REMOTE_ERROR;
		}
	}
	leave(c);
	return res;
}

#if VERSION == 8
static result net_isend(void *c, void *data, int size, int tag, void *mr, void **out) { return send_it(c, data, size, tag, mr, out); }
static result net_irecv(void *c, int n, void **data, int *sizes, int *tags, void **mrs, void **out) {
	size_t wide[MAX_RECVS];
	for (int i = 0; i < n && i < MAX_RECVS; i++) wide[i] = sizes[i];
	return receive_it(c, n, data, wide, tags, mrs, out);
}
#elif VERSION == 9
static result net_isend(void *c, void *data, size_t size, int tag, void *mr, void **out) { return send_it(c, data, size, tag, mr, out); }
static result net_irecv(void *c, int n, void **data, size_t *sizes, int *tags, void **mrs, void **out) { return receive_it(c, n, data, sizes, tags, mrs, out); }
#else
static result net_isend(void *c, void *data, size_t size, int tag, void *mr, void *profile, void **out) {
	return profile ? fault("isend with a profile") : send_it(c, data, size, tag, mr, out);
}
static result net_irecv(void *c, int n, void **data, size_t *sizes, int *tags, void **mrs, void **profiles, void **out) {
	return !profiles || profiles[0] ? fault("irecv with a profile") : receive_it(c, n, data, sizes, tags, mrs, out);
}
#endif

static result net_flush(void *opaque, int n, void **data, int *sizes, void **mrs, void **out) {
	comm *c = opaque;
	MAY_FAIL_WITH("iflush", out);
	if (flushing == 1) return fault("a flush, and none is needed");
	if (!enter(c, RECEIVER)) return INVALID_USAGE;
	result res = SUCCESS;
	int found = 0;
	for (int i = 0; i < MAX_REQUESTS; i++) {
		if (!c->unseen[i].from || c->unseen[i].to != data[0]) continue;
		found = 1;
		if (n != 1 || c->unseen[i].size != sizes[0] || !covers(mrs[0], c, data[0], sizes[0])) res = fault("flush of something else");
		else memcpy(c->unseen[i].seen, c->unseen[i].from, c->unseen[i].size);
		free(c->unseen[i].from);
		c->unseen[i].from = 0;
	}
	if (!found) res = fault("flush of what was not received");
	request *r = delay ? begin_flush(c) : 0; // none: it is done
	if (delay && !r) res = fault("more receives and flushes than allowed");
	*out = r;
	leave(c);
	return res;
}

static result net_test(void *opaque, int *done, int *sizes) {
	request *r = opaque;
	*done = 0;
	MAY_FAIL("test");
	if (!r || !r->used) return fault("test of no request");
	comm *c = r->comm;
	if (!enter(c, c->kind)) return INVALID_USAGE;
	result res = c->kind == SENDER ? send_on(c) : receive_on(c);
	if (r->done) res = SUCCESS;
	if (r->done && r->waits++ >= delay) {
		*done = 1, r->used = 0, c->outstanding--;
		for (int i = 0; sizes && i < r->n; i++) sizes[i] = c->kind == SENDER ? (int)r->sizes[i] : r->got[i];
	}
	if (*done && sizes && lies("test") && c->kind == RECEIVER) sizes[0] = lie;
	leave(c);
	return res;
}

static result net_close(void *opaque, enum kind kind) {
	comm *c = opaque;
	if (!enter(c, kind)) return INVALID_USAGE;
	close(c->fd);
	for (int i = 0; i < MAX_REQUESTS; i++) free(c->unseen[i].from);
	c->kind = 0;
	objects--;
	free(c);
	return SUCCESS;
}
static result net_close_send(void *c) { MAY_FAIL("closeSend"); return net_close(c, SENDER); }
static result net_close_recv(void *c) { MAY_FAIL("closeRecv"); return net_close(c, RECEIVER); }
static result net_close_listen(void *c) { MAY_FAIL("closeListen"); return net_close(c, LISTENER); }
static result net_device_mr(void *c, void *mr, void **out) { return fault("getDeviceMr"); }
static result net_consumed(void *c, int n, void *r) { return fault("irecvConsumed"); }
#if VERSION >= 9
static result net_vdevice(int *d, vdevice *p) { return fault("makeVDevice"); }
#endif
#if VERSION >= 11
static result net_finalize(void *ctx) {
	MAY_FAIL("finalize");
	if (no_context(ctx)) return fault("finalize of no context");
	((context *)ctx)->kind = 0;
	objects--;
	free(ctx);
	return SUCCESS;
}
static result net_attributes(void *ctx, void *attributes) { return SUCCESS; }
#endif

#ifndef WITHOUT_CONNECT
#define CONNECT net_connect
#else
#define CONNECT 0
#endif
#ifndef WITHOUT_FLUSH
#define FLUSH net_flush
#else
#define FLUSH 0
#endif
#ifndef WITHOUT_TABLE
const CAT(net, VERSION) CAT(ncclNetPlugin_v, VERSION) = {
	"Test", net_init, net_devices, net_properties, net_listen, CONNECT, net_accept, net_reg, net_reg_dmabuf, net_dereg,
	net_isend, net_irecv, FLUSH, net_test, net_close_send, net_close_recv, net_close_listen, net_device_mr, net_consumed,
#if VERSION >= 9
	net_vdevice,
#endif
#if VERSION >= 11
	net_finalize, net_attributes,
#endif
};
#endif

// The layouts of this compiler, as lines of "struct field offset".
#define FIELD(s, f) n += snprintf(out + n, size - n, #s " " #f " %zu\n", offsetof(s, f));
#define COMMON(s) FIELD(s, name) FIELD(s, pciPath) FIELD(s, guid) FIELD(s, ptrSupport) FIELD(s, regIsGlobal) FIELD(s, speed) FIELD(s, port) \
	FIELD(s, latency) FIELD(s, maxComms) FIELD(s, maxRecvs) FIELD(s, netDeviceType) FIELD(s, netDeviceVersion)
#define MORE(s) COMMON(s) FIELD(s, forceFlush) FIELD(s, vProps) FIELD(s, maxP2pBytes) FIELD(s, maxCollBytes)
#define SIZE(s) n += snprintf(out + n, size - n, #s " size %zu\n", sizeof(s));
#define TABLE(s) SIZE(s) FIELD(s, name) FIELD(s, init) FIELD(s, devices) FIELD(s, getProperties) FIELD(s, listen) FIELD(s, connect) FIELD(s, accept) \
	FIELD(s, regMr) FIELD(s, regMrDmaBuf) FIELD(s, deregMr) FIELD(s, isend) FIELD(s, irecv) FIELD(s, iflush) FIELD(s, test) FIELD(s, closeSend) \
	FIELD(s, closeRecv) FIELD(s, closeListen) FIELD(s, getDeviceMr) FIELD(s, irecvConsumed)
void net_test_layout(char *out, size_t size) {
	size_t n = 0;
	COMMON(properties8) SIZE(properties8) MORE(properties9) SIZE(properties9) MORE(properties10) SIZE(properties10)
	MORE(properties11) FIELD(properties11, maxMultiRequestSize) SIZE(properties11)
	TABLE(net8) TABLE(net9) FIELD(net9, makeVDevice) TABLE(net10) FIELD(net10, makeVDevice)
	TABLE(net11) FIELD(net11, makeVDevice) FIELD(net11, finalize) FIELD(net11, setNetAttr)
}
