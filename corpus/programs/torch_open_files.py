# cause: open_files
# exit: 1
"""PyTorch's own words: its workers pass tensors as file descriptors."""

raise RuntimeError(
    "Too many open files. Communication with the workers is no longer possible. Please increase the limit using "
    "`ulimit -n` in the shell or change the sharing strategy by calling "
    "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code"
)
