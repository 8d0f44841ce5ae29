"""The command `auto`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from legnn.cli.loading import loading
from legnn.cli.options import argument, option, with_settings
from legnn.cli.processes import stop_on_signal, typed_command
from legnn.config.duration import parse_duration
from legnn.errors import Interrupted

LEAST_SECONDS = 0.1
"""Of a search, where importing the library took all of the budget."""


@with_settings
def auto(
    data: Annotated[str, argument("A named data set or a folder of tables")],
    budget: Annotated[str, option("Time for everything, such as 90s, 10m or 1.5h [10m]")] = "10m",
    single: Annotated[bool, option("Return the best single model, not an ensemble")] = False,
    jobs: Annotated[int | None, option("Candidates at a time [one a core, or one a GPU]")] = None,
    trials: Annotated[int | None, option("Most candidates [as many as the time allows]")] = None,
    space: Annotated[
        str, option("What is searched: wide, all settings that matter, or paper, the paper's grid [wide]")
    ] = "wide",
    sampler: Annotated[
        str, option("What proposes candidates: portfolio, tpe (Optuna), or grid [portfolio]")
    ] = "portfolio",
    only: Annotated[str | None, option("Candidates by name, joined by commas [the portfolio]")] = None,
    out: Annotated[Path | None, option("Folder of the search [runs/DATA-auto]")] = None,
    *,
    settings: Mapping[str, Any],
) -> None:
    """Find the best model in a given time: a portfolio of settings, changes of its leaders, and an ensemble.

    Everything is chosen by validation nodes alone. The same command with the same --out continues after an interruption
    or with a larger --budget. Settings that are given hold for every candidate.
    """
    began = time.monotonic()
    seconds = parse_duration(budget)

    with loading():
        from legnn.cli.display import show_leaderboard, show_result
        from legnn.runs.folder import LEADERBOARD
        from legnn.search.auto import auto as search
        from legnn.search.auto import new_folder

    folder = out or new_folder(data)
    names = None if only is None else [name.strip() for name in only.split(",") if name.strip()]
    try:
        with stop_on_signal() as should_stop:
            ensemble = search(
                data,
                # what was imported so far took its part
                budget=max(seconds - (time.monotonic() - began), LEAST_SECONDS),
                out=folder,
                single=single,
                jobs=jobs,
                trials=trials,
                space=space,  # type: ignore[arg-type]
                sampler=sampler,  # type: ignore[arg-type]
                only=names,
                progress=True,
                should_stop=should_stop,
                settings=settings,
            )
    except Interrupted:
        # without --out the next search would have another folder
        option_out = "" if out else f" --out {shlex.quote(str(folder))}"
        raise Interrupted(None, folder, command=typed_command() + option_out) from None
    show_leaderboard(folder / LEADERBOARD)
    show_result(ensemble.result, folder)
