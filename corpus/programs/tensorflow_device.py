# cause: device_memory
# exit: 1
"""TensorFlow on an accelerator."""


class ResourceExhaustedError(Exception):
    __module__ = "tensorflow.python.framework.errors_impl"


raise ResourceExhaustedError(
    "Graph execution error:\n\nDetected at node 'model/conv2d/Conv2D' defined at (most recent call last):\n"
    "OOM when allocating tensor with shape[32,1024,64,64] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n\t [[{{node model/conv2d/Conv2D}}]]\n"
    "Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom to "
    "RunOptions for current allocation info. [Op:__inference_train_function_859884]"
)
