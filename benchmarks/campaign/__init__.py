"""Faults on purpose: processes that are killed, writers that race, hours of work in one process."""
