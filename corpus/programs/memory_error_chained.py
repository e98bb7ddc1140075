# cause: memory_error
# exit: 1
"""A framework wraps the MemoryError into an error of its own."""


class StepFailed(RuntimeError):
    pass


def step():
    try:
        return [0] * 10**18
    except MemoryError as error:
        raise StepFailed("step 12 failed") from error


step()
