// cause: abort
// exit: 134
// An assertion that does not hold.
#include <assert.h>
#include <string.h>

int main(int count, char **words) {
    assert(strlen(words[0]) == (size_t)count + 100000);
    return 0;
}
