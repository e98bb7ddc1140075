// cause: success
// pattern: not leak
// exit: 0
// Small blocks are freed, but one at the top of the heap keeps all of it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    enum { BLOCKS = 100000 };
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(1000);
        memset(blocks[i], 1, 1000);
    }
    for (int i = 0; i < BLOCKS - 1; i++)
        free(blocks[i]);
    usleep(2500000);
    return blocks[BLOCKS - 1][0] - 1;
}
