# cause: failed
# near-miss of: segmentation_fault
# exit: 1
"""A test program that reports another one's crash."""
import sys

print("test_read ... Segmentation fault (core dumped)")
sys.exit("1 of 12 tests failed")
