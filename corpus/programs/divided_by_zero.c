// cause: abort or failed
// exit: 136
// A division by zero in native code: SIGFPE.
int main(int count, char **words) {
    (void)words;
    volatile int zero = count - count;
    return count / zero;
}
