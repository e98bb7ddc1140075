# cause: failed
# exit: 1
"""It never began: the source cannot be read."""

if True
    print("training")
