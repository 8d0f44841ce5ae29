"""Measurements, not part of the package."""

import os

from legnn.environment import thread_waiting

# as the command does, and as early: before PyTorch is imported
os.environ.update(thread_waiting())
