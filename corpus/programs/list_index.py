# cause: index_error
# exit: 1
"""An index beyond the end."""

labels = ["cat", "dog"]
for number in range(3):
    print(labels[number])
