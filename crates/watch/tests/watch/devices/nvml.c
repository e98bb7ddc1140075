/* A library of NVIDIA's interface without a driver: its figures come from a text file (FIGURES) of lines
   "name number", which a test changes while a job runs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15 };

/* The last line with this name, or what stands in for it. */
static u64 figure(const char *name, u64 missing) {
    char key[64];
    u64 value, found = missing;
    FILE *file = fopen(FIGURES, "r");
    if (!file) return missing;
    while (fscanf(file, "%63s %llu", key, &value) == 2)
        if (!strcmp(key, name)) found = value;
    fclose(file);
    return found;
}

static int lost(void) { return figure("lost", 0) ? LOST : OK; }

int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int error) { (void)error; return "made up"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = figure("count", 1); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(u64)(index + 1); return OK; }

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    (void)device;
    strncpy(name, "Made-up GPU", length);
    return OK;
}

struct memory { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory) {
    (void)device;
    while (figure("hang", 0)) sleep(1);
    if (lost()) return LOST;
    memory->total = figure("total", 0);
    memory->used = figure("used", 0);
    memory->free = memory->total - memory->used;
    memory->reserved = 0;
    return OK;
}

struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
    (void)device;
    rates->gpu = figure("busy", 0);
    return lost();
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
    (void)device, (void)sensor;
    *degrees = figure("temperature", 0);
    return lost();
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *reasons) {
    (void)device;
    *reasons = figure("throttle", 0);
    return lost();
}

/* Only uncorrected (1), volatile (0) ones are told; not every device counts any. */
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, u64 *errors) {
    (void)device;
    *errors = figure("ecc", ~0ULL);
    return type == 1 && counter == 0 && *errors != ~0ULL ? lost() : NOT_SUPPORTED;
}

struct process { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; };
static int process(unsigned *count, struct process *processes, const char *pid, const char *own) {
    unsigned room = *count, found = figure(pid, 0) != 0;
    *count = found;
    if (!found) return OK;
    if (room < found) return INSUFFICIENT_SIZE;
    processes[0].pid = figure(pid, 0);
    processes[0].used = figure(own, 0);
    processes[0].gpu_instance = processes[0].compute_instance = ~0U;
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes) {
    (void)device;
    return process(count, processes, "pid", "own");
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *processes) {
    (void)device;
    return process(count, processes, "pid", "own");
}

struct event { void *device; u64 type, data; unsigned gpu_instance, compute_instance; };
static u64 told;
int nvmlEventSetCreate(void **set) { *set = &told; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceRegisterEvents(void *device, u64 types, void *set) { (void)device, (void)set; return types == 8 ? OK : NOT_SUPPORTED; }
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned timeout) {
    (void)set, (void)timeout;
    u64 xid = figure("xid", 0);
    if (xid == told) return TIMEOUT;
    event->device = (void *)1;
    event->type = 8;
    event->data = told = xid;
    return OK;
}
