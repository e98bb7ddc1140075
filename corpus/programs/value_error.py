# cause: failed
# exit: 1
"""An error of its own, with a traceback."""


def rate(text):
    if text not in ("0.1", "0.01"):
        raise ValueError(f"rate is {text!r}, not a number")
    return float(text)


print(rate("fast"))
