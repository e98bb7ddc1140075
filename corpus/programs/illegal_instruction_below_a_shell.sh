# cause: illegal_instruction
# needs: gcc
# exit: 132
# The same below a job script.
cat > new.c << 'END'
int main(void) { __builtin_trap(); }
END
gcc -o new new.c
./new
exit $?
