# cause: cgroup_oom
# grade: proven
# memory: 128MB
# exit: 137
"""JSON of 20 MB becomes objects of ten times that size."""
import json

row = '{"id": 1, "tags": ["a", "b", "c"], "point": {"x": 1.5, "y": 2.5}}'
text = "[" + ",".join([row] * 300_000) + "]"
print(f"{len(text) / 1e6:.0f} MB of text", flush=True)
table = json.loads(text)
print(len(table))
