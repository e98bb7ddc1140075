# cause: memory_error
# exit: 1
"""A text of an exabyte."""


def pad(text, width):
    return text * width


print(len(pad("x", 10**18)))
