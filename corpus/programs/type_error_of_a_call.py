# cause: type_error
# exit: 1
"""An argument too many."""


def train(epochs):
    return epochs


train(3, rate=0.1)
