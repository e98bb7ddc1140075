// cause: address_space
// limit: as=100M
// exit: 1
// malloc has no more under `ulimit -v`, and the program says so.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    for (;;) {
        if (malloc(1 << 20) == NULL) {
            perror("malloc");
            return 1;
        }
    }
}
