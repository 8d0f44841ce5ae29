"""The command `tune`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from legnn.cli.loading import loading
from legnn.cli.options import argument, option, with_settings
from legnn.cli.processes import stop_on_signal, typed_command
from legnn.config.duration import parse_duration
from legnn.errors import InputError, Interrupted


@with_settings
def tune(
    data: Annotated[str, argument("A named data set or a folder of tables [digits]")] = "digits",
    trials: Annotated[int | None, option("Most trials [50 without a budget; the whole grid of the paper]")] = None,
    budget: Annotated[str | None, option("Time for the trials, such as 90s, 10m or 1.5h [none]")] = None,
    space: Annotated[
        str, option("What is searched: all settings that matter (full), or the paper's grid (paper) [full]")
    ] = "full",
    out: Annotated[Path | None, option("Folder of the search [runs/tune-DATA]")] = None,
    preset: Annotated[str | None, option("What chooses the settings that are not searched [recommended]")] = None,
    *,
    settings: Mapping[str, Any],
) -> None:
    """Search settings by validation accuracy (Optuna); those that are given are fixed.

    Every trial is a run in a folder. After an interruption the same command continues.
    """
    seconds = None if budget is None else parse_duration(budget)
    if space not in ("full", "paper"):
        raise InputError(f"space must be full or paper, got {space!r}")
    folder = Path("runs") / f"tune-{Path(data).resolve().name}" if out is None else out
    # the library and Rich are imported when there is work for them: --help answers at once
    with loading():
        from legnn.automl.tune import tune as search
        from legnn.cli.search_display import TrialProgress, show_tuned

    try:
        with stop_on_signal() as should_stop, TrialProgress() as progress:
            found = search(
                data,
                preset=preset,
                settings=settings,
                trials=trials,
                budget=seconds,
                space="paper" if space == "paper" else "full",
                out=folder,
                on_progress=progress.show,
                should_stop=should_stop,
            )
    except Interrupted:
        raise Interrupted(None, None, command=typed_command()) from None
    show_tuned(found)
