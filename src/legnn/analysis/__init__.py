"""Measurements of finished runs; nothing here trains."""
