// cause: success
// near-miss of: bad_alloc
// exit: 0
// std::bad_alloc that is coped with.
#include <iostream>
#include <vector>

int main() {
    for (unsigned long long size = 1ull << 50;; size >>= 30) {
        try {
            std::vector<char> table(size);
            std::cout << "done with " << table.size() << "\n";
            return 0;
        } catch (const std::bad_alloc &error) {
            std::cerr << error.what() << ", trying again with less\n";
        }
    }
}
