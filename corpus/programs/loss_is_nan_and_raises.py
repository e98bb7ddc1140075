# cause: not_a_number
# exit: 1
"""The rate is too high: the loss grows beyond all numbers, and the loop gives up."""
import math

weight, rate = 1.0, 30.0
for step in range(200):
    loss = (weight - 3.0) ** 2 if abs(weight) < 1e150 else math.inf - math.inf
    print(f"step {step} loss: {loss:.4g}", flush=True)
    if math.isnan(loss):
        raise ValueError("loss is nan")
    weight -= rate * 2 * (weight - 3.0)
