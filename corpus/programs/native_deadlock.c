// cause: hang
// slow
// after: kill=TERM 14s
// exit: 143
// A thread takes the same lock twice.
#include <pthread.h>
#include <stdio.h>

int main(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    puts("working");
    fflush(stdout);
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
    return 0;
}
