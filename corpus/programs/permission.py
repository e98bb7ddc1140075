# cause: permission
# exit: 1
"""A file of the system that nobody may write, not even root."""

with open("/sys/kernel/uevent_seqnum", "w") as file:
    file.write("1")
