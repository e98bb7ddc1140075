// cause: abort or failed
// exit: 134
// An exception that nobody catches, and not for memory.
#include <stdexcept>

int main() { throw std::runtime_error("cannot read the model: wrong magic number"); }
