// cause: bad_alloc
// exit: 134
// std::bad_alloc that nobody catches.
#include <iostream>
#include <vector>

int main() {
    std::vector<char> table(1ull << 50);
    std::cout << table.size() << "\n";
}
