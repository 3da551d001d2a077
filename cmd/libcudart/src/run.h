// run.h has what every function of the runtime begins and ends with.

// RUN carries out a call with a context current, OPENED one that needs none. The result is kept for cudaGetLastError.
#define RUN(call)                                   \
	({                                          \
		int result_ = entered();            \
		done(result_ ? result_ : (call));   \
	})
#define OPENED(call)                                \
	({                                          \
		int result_ = ready();              \
		done(result_ ? result_ : (call));   \
	})
