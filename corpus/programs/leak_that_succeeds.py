# cause: success
# pattern: leak
# line: 11
# exit: 0
"""It leaks all the time, and is done before that hurts."""
import random



def predict(step):
    return [round(random.gauss(step, 1), 5) for _ in range(1_000)]


kept = []
for step in range(1_600):
    predictions = predict(step % 7)
    kept.append(predictions)
    if step % 200 == 0:
        print(f"step {step} mean {sum(predictions) / len(predictions):.3f}", flush=True)
