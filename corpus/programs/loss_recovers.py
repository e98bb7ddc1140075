# cause: success
# near-miss of: not_a_number
# exit: 0
"""Half precision: one step overflows and is left out, the next ones are fine."""

for step in range(20):
    loss = float("nan") if step == 1 else 2.0 / (step + 1)
    print(f"step {step} loss: {loss:.4f}" + (" (overflow, step is left out)" if step == 1 else ""))
print("final loss: 0.1000")
