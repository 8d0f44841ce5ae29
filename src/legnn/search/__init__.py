"""Accuracy without tuning: a portfolio of settings, a search under a budget, and an ensemble."""
