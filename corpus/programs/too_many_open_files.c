// cause: open_files
// limit: nofile=64
// exit: 1
// A native program says it in the words of the C library.
#include <stdio.h>

int main(void) {
    for (;;) {
        if (fopen("/dev/null", "r") == NULL) {
            perror("fopen");
            return 1;
        }
    }
}
