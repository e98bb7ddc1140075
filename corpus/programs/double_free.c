// cause: abort
// exit: 134
// Freed twice, which the C library notices.
#include <stdlib.h>

int main(void) {
    char *volatile block = malloc(100);
    free(block);
    free(block);
    return 0;
}
