// cause: abort or index_error
// near-miss of: bad_alloc
// exit: 134
// An index out of range in C++.
#include <vector>

int main(int count, char **) {
    std::vector<int> values(3);
    return values.at(count + 9);
}
