"""The command `settings`."""

from __future__ import annotations

from typing import Annotated

from legnn.cli.loading import loading
from legnn.cli.options import argument
from legnn.config import settings_table
from legnn.config.settings import SETTINGS, names_for, require_setting


def settings(
    name: Annotated[str | None, argument("A setting, or a section such as model.appnp [all]")] = None,
) -> None:
    """List the settings with their values, defaults and help; give them as `--set NAME=VALUE` or in a file."""
    from legnn.cli.display import show_settings

    names = [known for known in SETTINGS if name is None or known == name or known.startswith(f"{name}.")]
    if not names:
        names = names_for(str(name))
    if not names:
        require_setting(name)
    show_settings(settings_table(names))
    if names == ["train.choose_by"]:
        with loading():
            from legnn.cli.console import print_line
            from legnn.training import choosing_metrics

        print_line(f"metrics: {', '.join(choosing_metrics())}")
