// cause: stack_overflow
// near-miss of: segmentation_fault
// exit: 139
// A recursion without an end.
#include <string.h>

int depth(int level) {
    volatile char frame[4096];
    memset((char *)frame, level, sizeof frame);
    return depth(level + 1) + frame[level % 4096];
}

int main(void) { return depth(0); }
