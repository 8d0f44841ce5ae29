"""Compressed sparse rows: construction from edges, and transposition."""
