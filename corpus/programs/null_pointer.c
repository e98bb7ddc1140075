// cause: segmentation_fault
// exit: 139
// A pointer to nothing.
#include <stddef.h>

struct node {
    int value;
    struct node *next;
};

int main(void) {
    struct node last = {1, NULL};
    struct node *volatile node = &last;
    return node->next->value;
}
