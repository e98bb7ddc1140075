# cause: failed
# exit: 2
"""A word on the command line that it does not know."""
import argparse

arguments = argparse.ArgumentParser()
arguments.add_argument("--epochs", type=int, required=True)
arguments.parse_args()
