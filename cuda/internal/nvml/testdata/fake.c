/* An NVML for tests. Macros leave functions out (NO_V2, NO_POWER, NO_INIT) or let them say
   "not supported", as integrated GPUs do (INTEGRATED). */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { success = 0, not_found = 6, not_supported = 3 };
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2;

#ifdef INTEGRATED
#define ANSWER(set) (void)0; return not_supported
#else
#define ANSWER(set) set; return success
#endif

#ifndef NO_INIT
int nvmlInit_v2(void) { return success; }
#endif
int nvmlShutdown(void) { return success; }
const char *nvmlErrorString(int code) { return code == not_supported ? "Not Supported" : code ? "Not Found" : "Success"; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { snprintf(s, n, "580.65.06"); return success; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **d) {
  *d = (void *)0x100;
  return strcmp(uuid, "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a") ? not_found : success;
}
int nvmlDeviceGetName(void *d, char *s, unsigned n) { snprintf(s, n, "Fake GPU"); return success; }
int nvmlDeviceGetUtilizationRates(void *d, rates *r) { ANSWER((r->gpu = 37, r->memory = 12)); }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { ANSWER((m->total = 100, m->used = 40, m->free = 60)); }
#ifndef NO_V2
int nvmlDeviceGetMemoryInfo_v2(void *d, memory2 *m) {
  ANSWER((m->total = 100, m->reserved = 5, m->used = 35, m->free = 60));
}
#endif
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *t) { *t = 44; return success; }
#ifndef NO_POWER
int nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatts) { ANSWER(*milliwatts = 123456); }
#endif
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz) { ANSWER(*mhz = kind == 2 ? 3201 : 1980); }
int nvmlDeviceGetEccMode(void *d, int *now, int *pending) { ANSWER((*now = 1, *pending = 1)); }
int nvmlDeviceGetTotalEccErrors(void *d, int type, int counter, unsigned long long *n) { ANSWER(*n = 3); }
