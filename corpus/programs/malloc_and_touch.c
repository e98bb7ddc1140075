// cause: cgroup_oom
// grade: proven
// memory: 96MB
// exit: 137
// Blocks that are filled and never freed.
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL)
            return 1;
        memset(block, 1, 1 << 20);
    }
}
