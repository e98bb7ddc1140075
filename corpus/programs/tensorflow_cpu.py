# cause: memory_error or bad_alloc
# near-miss of: device_memory
# exit: 1
"""TensorFlow in the memory of the machine: the same words, another allocator."""


class ResourceExhaustedError(Exception):
    __module__ = "tensorflow.python.framework.errors_impl"


raise ResourceExhaustedError(
    "{{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:CPU:0}} OOM when allocating tensor "
    "with shape[209715200,300000] and type double on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu "
    "[Op:Fill] name: "
)
