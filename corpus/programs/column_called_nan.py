# cause: failed
# near-miss of: not_a_number
# exit: 1
"""A loss that is fine, a column that has a hole, and an end of its own."""

print("epoch 1 loss: 0.51")
print("epoch 2 loss: 0.44")
print("loss by group: {'a': 0.4, 'b': nan}")
raise ValueError("group 'b' has no rows")
