"""Threads, compilation, hashing and arrays for the kernels."""
