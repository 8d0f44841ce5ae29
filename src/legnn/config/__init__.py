"""Every setting: its name, type, default, range and help."""

from legnn.config.data import DataSettings

__all__ = ["DataSettings"]
