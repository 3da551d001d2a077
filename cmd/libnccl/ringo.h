/* ringo.h is what libnccl.so.2 has beside NCCL's interface: communicators on host memory for programs and
 * bindings that need no GPU, with time-outs, operations in the background, messages with tags and
 * from any source, and errors whole. Communicators of ncclCommInitRank are others.
 *
 * A function returns a ringo_host_result, and where that is an error and "error" is not null, *error is the
 * sentence, to be freed with ringo_host_free. All functions may be called by any thread. They must not be
 * called in the child of a fork if the parent has called one before. Questions of NCCL's RAS are answered for
 * these communicators too.
 */
#ifndef RINGO_H
#define RINGO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	RINGO_HOST_OK = 0,
	RINGO_HOST_IN_PROGRESS = 1, /* ringo_host_wait: not yet */
	RINGO_HOST_INVALID = 2,     /* an argument is wrong; the communicator stays usable */
	RINGO_HOST_TIMEOUT = 3,
	RINGO_HOST_FAILED = 4 /* the communicator has ended, on all ranks */
} ringo_host_result;

typedef enum {
	RINGO_HOST_BARRIER = 1, RINGO_HOST_ALL_REDUCE, RINGO_HOST_REDUCE, RINGO_HOST_BROADCAST, RINGO_HOST_ALL_GATHER,
	RINGO_HOST_REDUCE_SCATTER, RINGO_HOST_ALL_TO_ALL, RINGO_HOST_GATHER, RINGO_HOST_SCATTER, RINGO_HOST_SEND,
	RINGO_HOST_RECV, RINGO_HOST_ALL_GATHERV, RINGO_HOST_ALL_TO_ALLV
} ringo_host_kind;

typedef enum {
	RINGO_HOST_INT8 = 1, RINGO_HOST_UINT8, RINGO_HOST_INT32, RINGO_HOST_UINT32, RINGO_HOST_INT64, RINGO_HOST_UINT64,
	RINGO_HOST_FLOAT16, RINGO_HOST_FLOAT32, RINGO_HOST_FLOAT64, RINGO_HOST_BFLOAT16, RINGO_HOST_FLOAT8_E4M3,
	RINGO_HOST_FLOAT8_E5M2
} ringo_host_type;

typedef enum {
	RINGO_HOST_SUM, RINGO_HOST_PROD, RINGO_HOST_MAX, RINGO_HOST_MIN, RINGO_HOST_AVG, RINGO_HOST_BIT_AND,
	RINGO_HOST_BIT_OR, RINGO_HOST_BIT_XOR
} ringo_host_op;

enum { RINGO_HOST_ID_BYTES = 128, RINGO_HOST_ANY = -1 };

/* A ringo_host_call is one operation. count is in elements, as NCCL counts them: of a rank's share where the
 * ranks' shares lie side by side. in and out may be the same where NCCL allows it. */
typedef struct {
	int kind, type, op;
	int peer; /* the root, or the other rank of SEND and RECV */
	const void *in;
	void *out;
	size_t count;
	const int64_t *in_counts, *out_counts; /* of the two kinds with a V, by rank, in elements; data are packed */
	int64_t timeout;                       /* of its waits in ns, 0 for the communicator's */
} ringo_host_call;

/* Handles, never 0. */
typedef uintptr_t ringo_host_comm, ringo_host_pending, ringo_host_mail;

/* ringo_host_new_id makes a meeting point and serves it from this process. address is "host:port", or null for a
 * free port on the interface that the environment chooses. */
int ringo_host_new_id(const char *address, char id[RINGO_HOST_ID_BYTES], char **error);

/* ringo_host_open joins a communicator: all ranks call it with one ID. timeout, in ns, bounds the meeting and the waits of
 * each operation and message; 0 is the default of each. If it is the waits' default, 30 minutes, RINGO_TIMEOUT may set another. */
int ringo_host_open(const char id[RINGO_HOST_ID_BYTES], int rank, int size, int64_t timeout, ringo_host_comm *comm, char **error);

/* ringo_host_do carries out a call. ringo_host_start begins one; its memory must stay until the end, and its
 * order among the calls is that of the starts. */
int ringo_host_do(ringo_host_comm comm, const ringo_host_call *call, char **error);
int ringo_host_start(ringo_host_comm comm, const ringo_host_call *call, ringo_host_pending *pending, char **error);

/* ringo_host_wait waits for the end of what was started, at most timeout ns (below 0: without limit, as each operation has
 * its own). RINGO_HOST_IN_PROGRESS leaves it as it is; any other result is its own, and ends the handle. *source, if not null, is the
 * rank that a received message is from. */
int ringo_host_wait(ringo_host_pending pending, int64_t timeout, int *source, char **error);

/* ringo_host_failure says why no operation can succeed any more: OK while one may. It does not wait. */
int ringo_host_failure(ringo_host_comm comm, char **error);

/* ringo_host_abort ends all operations on all ranks; close waits for those that were started, and returns why
 * the communicator has failed, if no call has. After close the handle is gone. */
int ringo_host_abort(ringo_host_comm comm, const char *reason, char **error);
int ringo_host_close(ringo_host_comm comm, char **error);

/* A mail is messages of one rank with tags, beside the communicator's collectives and in no order with those. Messages of one
 * rank with one tag arrive in their order. A message that nobody waits for yet is kept in memory. One that has not ended within
 * the communicator's time-out fails (RINGO_HOST_TIMEOUT), one to or from a rank that has left or died as soon as that is known.
 * A line leads from one rank to another: the sender makes an ID, opens its end with _to, and gives the ID to the
 * receiver, who opens the other end with _from. Both return at once, and messages may be sent and waited for at once. */
int ringo_host_mail_open(ringo_host_comm comm, ringo_host_mail *mail, char **error);
int ringo_host_mail_to(ringo_host_mail mail, int peer, const char id[RINGO_HOST_ID_BYTES], char **error);
int ringo_host_mail_from(ringo_host_mail mail, int peer, const char id[RINGO_HOST_ID_BYTES], char **error);
int ringo_host_mail_send(ringo_host_mail mail, int peer, int64_t tag, const void *data, size_t bytes, ringo_host_pending *pending, char **error);
/* peer may be RINGO_HOST_ANY */
int ringo_host_mail_recv(ringo_host_mail mail, int peer, int64_t tag, void *data, size_t bytes, ringo_host_pending *pending, char **error);
int ringo_host_mail_close(ringo_host_mail mail, char **error);

void ringo_host_free(char *error);

#ifdef __cplusplus
}
#endif
#endif
