# cause: hardware
# exit: 1
"""An accelerator whose memory is broken."""

raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
