// cause: illegal_instruction
// exit: 132
// An instruction that no processor knows, as code for newer processors has for older ones.
int main(void) {
    __asm__ volatile(".byte 0x0f, 0x0b");
    return 0;
}
