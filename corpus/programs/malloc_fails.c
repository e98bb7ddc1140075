// cause: bad_alloc
// exit: 1
// malloc has no petabyte, and the program says so.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *table = malloc(1ul << 50);
    if (table == NULL) {
        perror("malloc");
        return 1;
    }
    table[0] = 1;
    return table[1];
}
