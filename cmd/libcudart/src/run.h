// run.h has what every function of the runtime begins and ends with.

// GIVEN refuses a null pointer, unless a condition holds.
#define GIVEN(pointer)                                                                            \
	if (!(pointer))                                                                           \
	return done(because(cudaErrorInvalidValue, "the argument " #pointer " is null"))
// WANT refuses arguments of which a condition does not hold.
#define WANT(condition, error, ...)                           \
	if (!(condition))                                     \
	return done(because(error, __VA_ARGS__))

// RUN carries out a call with a context current, OPENED one that needs none. The result is kept for cudaGetLastError.
#define RUN(call)                                   \
	({                                          \
		int result_ = entered();            \
		done(result_ ? result_ : (call));   \
	})
// BACK is RUN for what gives something back: at the end of the process too, when that is no leak but too late.
#define BACK(call)                                                                            \
	({                                                                                    \
		int result_ = entered();                                                      \
		done(result_ && result_ != cudaErrorCudartUnloading ? result_ : (call));      \
	})
#define OPENED(call)                                \
	({                                          \
		int result_ = ready();              \
		done(result_ ? result_ : (call));   \
	})
