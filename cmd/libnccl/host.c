//go:build linux

// The functions of ringo.h: each starts the Go half on first use and hands over its arguments (host.go).
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "thread.h"

#define FUNCTION(name, arguments, call)                                            \
	int ringo_host_##name arguments                                            \
	{                                                                          \
		if (library_ready())                                               \
			return go_host_##call;                                     \
		if (error)                                                         \
			*error = strdup(thread_error());                           \
		return RINGO_HOST_INVALID;                                         \
	}

FUNCTION(new_id, (const char *address, char id[RINGO_HOST_ID_BYTES], char **error), new_id((char *)address, id, error))
FUNCTION(open, (const char id[RINGO_HOST_ID_BYTES], int rank, int size, int64_t timeout, ringo_host_comm *comm, char **error),
	 open((char *)id, rank, size, timeout, comm, error))
FUNCTION(do, (ringo_host_comm comm, const ringo_host_call *call, char **error), do(comm, (ringo_host_call *)call, error))
FUNCTION(start, (ringo_host_comm comm, const ringo_host_call *call, ringo_host_pending *pending, char **error),
	 start(comm, (ringo_host_call *)call, pending, error))
FUNCTION(wait, (ringo_host_pending pending, int64_t timeout, int *source, char **error), wait(pending, timeout, source, error))
FUNCTION(failure, (ringo_host_comm comm, char **error), failure(comm, error))
FUNCTION(abort, (ringo_host_comm comm, const char *reason, char **error), abort(comm, (char *)reason, error))
FUNCTION(close, (ringo_host_comm comm, char **error), close(comm, error))
FUNCTION(mail_open, (ringo_host_comm comm, ringo_host_mail *mail, char **error), mail_open(comm, mail, error))
FUNCTION(mail_to, (ringo_host_mail mail, int peer, const char id[RINGO_HOST_ID_BYTES], char **error), mail_line(mail, peer, (char *)id, 1, error))
FUNCTION(mail_from, (ringo_host_mail mail, int peer, const char id[RINGO_HOST_ID_BYTES], char **error), mail_line(mail, peer, (char *)id, 0, error))
FUNCTION(mail_send, (ringo_host_mail mail, int peer, int64_t tag, const void *data, size_t bytes, ringo_host_pending *pending, char **error),
	 mail_move(mail, peer, tag, (uintptr_t)data, bytes, 1, pending, error))
FUNCTION(mail_recv, (ringo_host_mail mail, int peer, int64_t tag, void *data, size_t bytes, ringo_host_pending *pending, char **error),
	 mail_move(mail, peer, tag, (uintptr_t)data, bytes, 0, pending, error))
FUNCTION(mail_close, (ringo_host_mail mail, char **error), mail_close(mail, error))

void ringo_host_free(char *error) { free(error); }
