// Prints the version that the library answers as, or why it has none; with a parameter of NCCL its value, and that of the
// environment.
#include "check.h"

int main(int argc, char **argv)
{
	if (argc > 1) {
		const char *value;
		int length;
		OK(ncclParamGetParameter(argv[1], &value, &length));
		printf("%s %s\n", value, getenv(argv[1]));
		return 0;
	}
	int version;
	ncclResult_t r = ncclGetVersion(&version);
	if (r == ncclSuccess)
		printf("%d\n", version);
	else
		printf("%d %s\n", r, ncclGetLastError(NULL));
	return 0;
}
