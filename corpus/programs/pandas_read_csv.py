# cause: cgroup_oom
# grade: proven
# memory: 160MB
# needs: pandas
# line: 15
# exit: 137
"""A table of text read whole."""
import pandas as pd

with open("table.csv", "w") as file:
    file.write("id,name,city,comment\n")
    for number in range(1_600_000):
        file.write(f"{number},name {number},city {number % 9973},a comment of some length {number}\n")
print("written", flush=True)
table = pd.read_csv("table.csv")
print(table.shape)
