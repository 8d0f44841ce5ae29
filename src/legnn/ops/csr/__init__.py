"""Compressed sparse rows (CSR): construction from edges, transposition, chunks of long rows, label edges."""
