"""Every setting, declared once: its name, type, default, range, choices and help."""

from legnn.config.data import DataSettings
from legnn.config.facts import FEW_LABELS, GraphFacts
from legnn.config.model import ModelSettings
from legnn.config.presets import PRESETS, Preset
from legnn.config.settings import COMMON, SETTINGS, CommonSettings, ResolvedSettings, Settings, collect, settings_table
from legnn.config.training import SelfTrainingSettings, TrainSettings, fanouts_for

__all__ = [
    "COMMON",
    "FEW_LABELS",
    "PRESETS",
    "SETTINGS",
    "CommonSettings",
    "DataSettings",
    "GraphFacts",
    "ModelSettings",
    "Preset",
    "ResolvedSettings",
    "SelfTrainingSettings",
    "Settings",
    "TrainSettings",
    "collect",
    "fanouts_for",
    "settings_table",
]
