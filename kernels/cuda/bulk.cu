// The kernels of run.cu by bulk copies: for devices of capability 9.0 and newer, with few
// blocks of few threads. Peers do not notice which of the two a rank runs.
#define BULK
#define RUN bulk
#define MESSAGES bulk_messages
#include "run.cu"
