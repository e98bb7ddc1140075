// cause: abort
// exit: 134
// Written beyond a block, which the C library notices later.
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *volatile block = malloc(24);
    memset(block, 'x', 24 + 24);
    char *next = malloc(5000);
    free(block);
    free(next);
    return malloc(100000) == NULL;
}
