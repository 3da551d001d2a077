// Prints the version that the library answers as, or why it has none.
#include "check.h"

int main(void)
{
	int version;
	ncclResult_t r = ncclGetVersion(&version);
	if (r == ncclSuccess)
		printf("%d\n", version);
	else
		printf("%d %s\n", r, ncclGetLastError(NULL));
	return 0;
}
