// cause: segmentation_fault
// near-miss of: cgroup_oom
// memory: 96MB
// exit: 139
// A crash while nearly all memory is taken.
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t size = 85000000;
    char *table = malloc(size);
    memset(table, 1, size);
    return *(volatile int *)(long)(table[0] - 1);
}
