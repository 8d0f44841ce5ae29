"""What the kernels need at run time: threads, compilation, hashing, padding."""
