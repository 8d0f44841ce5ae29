"""Every setting, declared once: its name, type, default, range, choices and help."""

from legnn.config.data import DataSettings
from legnn.config.facts import FEW_LABELS, GraphFacts
from legnn.config.model import ModelSettings
from legnn.config.presets import PRESETS, Preset
from legnn.config.settings import SECTIONS, SETTINGS, ResolvedSettings, Settings, settings_table
from legnn.config.training import SelfTrainingSettings, TrainSettings, fanouts_for

__all__ = [
    "FEW_LABELS",
    "PRESETS",
    "SECTIONS",
    "SETTINGS",
    "DataSettings",
    "GraphFacts",
    "ModelSettings",
    "Preset",
    "ResolvedSettings",
    "SelfTrainingSettings",
    "Settings",
    "TrainSettings",
    "fanouts_for",
    "settings_table",
]
