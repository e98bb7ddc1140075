# cause: cgroup_oom
# grade: proven
# memory: 96MB
# pattern: leak
# line: 14
# exit: 137
"""A copy of the state at every step, to be able to go back."""
import copy

state = {f"layer {number}": [0.1] * 50 + [[number]] for number in range(300)}
snapshots = []
for step in range(10**9):
    state["step"] = step
    snapshots.append(copy.deepcopy(state))
    if step % 50 == 0:
        print("step", step, flush=True)
