// cause: cgroup_oom
// grade: proven
// memory: 96MB
// exit: 137
// A vector that doubles: at each step the old and the new one are there together.
#include <vector>

int main() {
    std::vector<double> values;
    for (double value = 0;; value += 1)
        values.push_back(value);
}
