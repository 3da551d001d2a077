// A small libnvidia-ml.so with two GPUs, for tests. -DOLD leaves out what came after R450,
// -DGONE has GPU 1 fallen off the bus, -DBROKEN does not start, -DONEDOMAIN has both in one PCI domain.
#include <stdio.h>
#include <string.h>

typedef struct gpu *device;
struct gpu {
	int number;
} gpus[2] = {{0}, {1}};

#ifdef ONEDOMAIN
static const char *second = "0000:3d:00.0";
#else
static const char *second = "0001:3d:00.0";
#endif

#define GET(name, value) \
	int name(device d, unsigned *v) { *v = (value); return 0; }

int nvmlInit_v2(void) {
#ifdef BROKEN
	return 18;
#endif
	return 0;
}
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "570.124.06"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *s, device *d) {
	if (!strcmp(s, "0000:1b:00.0")) *d = &gpus[0];
	else if (!strcmp(s, second)) *d = &gpus[1];
	else return 6;
	return 0;
}
int nvmlDeviceGetPersistenceMode(device d, unsigned *v) {
#ifdef GONE
	if (d->number == 1) return 15;
#endif
	*v = 1;
	return 0;
}
int nvmlDeviceGetEccMode(device d, unsigned *now, unsigned *pending) { *now = 1, *pending = 0; return 0; }
int nvmlDeviceGetTotalEccErrors(device d, int kind, int counter, unsigned long long *n) {
	*n = (1ull << 40) + 10 * kind + counter;
	return 0;
}
int nvmlDeviceGetRetiredPages(device d, int cause, unsigned *n, unsigned long long *at) {
	if (cause == 0) return *n = 0, 0;
	if (*n < 3 || !at) return *n = 3, 7;
	return 2;
}
int nvmlDeviceGetRetiredPagesPendingStatus(device d, unsigned *v) { return 3; }
int nvmlDeviceGetClockInfo(device d, int type, unsigned *v) { *v = 1000 + type; return 0; }
int nvmlDeviceGetMaxClockInfo(device d, int type, unsigned *v) { *v = 2000 + type; return 0; }
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *v) { *v = 41 + sensor; return 0; }
int nvmlDeviceGetTemperatureThreshold(device d, int kind, unsigned *v) { *v = kind == 1 ? 87 : 92; return 0; }
GET(nvmlDeviceGetCurrPcieLinkGeneration, 1)
GET(nvmlDeviceGetMaxPcieLinkGeneration, 5)
GET(nvmlDeviceGetCurrPcieLinkWidth, d->number ? 8 : 16)
GET(nvmlDeviceGetMaxPcieLinkWidth, 16)
GET(nvmlDeviceGetPcieReplayCounter, 7)
#ifdef OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *v) { *v = 0x48; return 0; }
#else
int nvmlDeviceGetCurrentClocksEventReasons(device d, unsigned long long *v) { *v = 1; return 0; }
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *pending) { *now = 0, *pending = 1; return 0; }
int nvmlDeviceGetRemappedRows(device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	*corrected = 1, *uncorrected = 2, *pending = 1, *failed = 0;
	return 0;
}
int nvmlDeviceGetNvLinkState(device d, unsigned link, unsigned *v) {
	if (link > 2) return 2;
	*v = link != 1;
	return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(device d, unsigned link, unsigned *v) { *v = 2; return 0; }
int nvmlDeviceGetNvLinkErrorCounter(device d, unsigned link, int kind, unsigned long long *v) {
	if (kind == 3) return 3;
	*v = 100 * link + kind;
	return 0;
}
#endif
