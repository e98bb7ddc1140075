// cause: time_limit
// limit: cpu=1
// exit: 152
// It computes beyond its limit of processor time: SIGXCPU.
int main(void) {
    volatile unsigned long count = 0;
    for (;;)
        count++;
}
