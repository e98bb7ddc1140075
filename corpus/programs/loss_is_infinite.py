# cause: not_a_number
# exit: 1
"""As the reference scripts of torchvision say it."""
import sys

loss = float("inf")
print(f"Loss is {loss}, stopping training")
print({"loss_classifier": loss, "loss_box_reg": 0.3})
sys.exit(1)
