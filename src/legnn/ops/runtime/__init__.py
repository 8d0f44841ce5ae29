"""What the kernels run on: threads, compilation, hashing, padding."""
