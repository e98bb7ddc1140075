# cause: failed
# near-miss of: index_error
# exit: 1
"""A message that speaks of indices, in an error of another kind."""


class ConfigError(Exception):
    pass


raise ConfigError("list index out of range is not allowed as a description; give a number")
