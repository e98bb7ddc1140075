// cause: address_space
// limit: as=100M
// exit: 134
// std::bad_alloc under `ulimit -v`.
#include <cstring>
#include <vector>

int main() {
    std::vector<char *> blocks;
    for (;;) {
        blocks.push_back(new char[1 << 20]);
        std::memset(blocks.back(), 1, 1 << 20);
    }
}
