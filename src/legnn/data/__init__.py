"""The graph the rest of the library sees: its fields, checks, splits and statistics."""

from legnn.data.fingerprint import fingerprint
from legnn.data.prepare import prepare
from legnn.data.statistics import Statistics, edge_count, edge_homophily, statistics
from legnn.data.validate import validate

__all__ = ["Statistics", "edge_count", "edge_homophily", "fingerprint", "prepare", "statistics", "validate"]
