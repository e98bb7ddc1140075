# cause: library_version
# exit: 1
"""A package that is not installed."""
import a_library_that_nobody_has

a_library_that_nobody_has.train()
