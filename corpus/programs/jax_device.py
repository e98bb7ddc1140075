# cause: device_memory
# exit: 1
"""JAX on an accelerator."""


class XlaRuntimeError(RuntimeError):
    __module__ = "jaxlib.xla_extension"


raise XlaRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.")
