# cause: disk_full
# limit: disk=2M
# exit: 1
"""Results that do not fit on the disk."""

with open("disk/results.csv", "w") as file:
    for number in range(1_000_000):
        file.write(f"{number},{number / 7}\n")
