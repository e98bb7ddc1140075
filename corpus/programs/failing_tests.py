# cause: failed
# near-miss of: memory_error
# exit: 1
"""A test of what happens when there is no memory shows it, and another test fails."""
import traceback
import unittest


class Tests(unittest.TestCase):
    def test_no_memory(self):
        try:
            bytearray(2**60)
        except MemoryError:
            traceback.print_exc()

    def test_sum(self):
        self.assertEqual(sum([1, 2]), 4)


unittest.main()
