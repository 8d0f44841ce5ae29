"""The command `reproduce`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from legnn.cli.loading import loading
from legnn.cli.options import SetOption, argument, option, parse_settings
from legnn.cli.processes import stop_on_signal, typed_command
from legnn.errors import InputError, Interrupted, did_you_mean, plural

if TYPE_CHECKING:
    from legnn.experiments import Plan


def reproduce(
    name: Annotated[str | None, argument("A table or figure; without it, they are listed")] = None,
    data: Annotated[str | None, option("Data sets or folders, joined by commas [the paper's]")] = None,
    backbone: Annotated[str | None, option("Backbones, joined by commas [the paper's]")] = None,
    seeds: Annotated[int, option("Seeds of every row: 0, 1, … [3]")] = 3,
    jobs: Annotated[int | None, option("Runs at a time [one a core, or one a GPU]")] = None,
    trials: Annotated[int, option("Settings that each row tries with seed 0; the best on validation goes on [1]")] = 1,
    only: Annotated[str | None, option("Rows by name, joined by commas [all]")] = None,
    compare_with: Annotated[
        str | None,
        option("designs, precision: CSV files of earlier reports, joined by commas, compared together with these"),
    ] = None,
    vary_split: Annotated[bool, option("Seed k trains on split k of data sets with several fixed splits")] = False,
    preset: Annotated[str, option("What chooses the settings that are left open [simple]")] = "simple",
    out: Annotated[Path, option("Folder of the runs and the reports [runs/reproduce]")] = Path("runs/reproduce"),
    set_: SetOption = None,
) -> None:
    """Make a table or figure of the paper on any data: Markdown, CSV and picture, from run folders.

    Trains only the runs that are missing; after an interruption the same command goes on. Settings that are given hold
    for every run. A graph too large for the full batch is trained on in mini-batches.
    """
    with loading():
        from legnn.experiments import EXPERIMENTS, Plan, Request

    if name is None:
        _list()
        return
    if name not in EXPERIMENTS:
        close = did_you_mean(name, EXPERIMENTS)
        raise InputError(f"there is no table or figure {name!r}{close}; choose from {', '.join(EXPERIMENTS)}")
    experiment, settings = EXPERIMENTS[name], parse_settings(set_)
    plan = Plan(
        experiment,
        Request(
            data=_words(data, experiment.data),
            backbones=_words(backbone, experiment.backbones),
            seeds=seeds,
            out=out,
            preset=preset,
            settings=settings,
            trials=trials,
            only=_words(only, ()),
            compare_with=tuple(map(Path, _words(compare_with, ()))),
            vary_split=vary_split,
        ),
    )
    failed, total = _train(plan, jobs, str(settings.get("train.device", "auto")))
    if not failed or (experiment.may_lack_runs and any(plan.runs(cell) for cell in plan.cells())):
        _report(plan)
    if failed:
        raise InputError(
            f"{failed} of {total} runs could not be trained; the others are kept, and the same command trains what is "
            "missing"
        )


def _words(text: str | None, default: Sequence[str]) -> tuple[str, ...]:
    return tuple(default if text is None else (word.strip() for word in text.split(",") if word.strip()))


def _train(plan: Plan, jobs: int | None, device: str) -> tuple[int, int]:
    """Trains what is missing, and returns how many runs could not be trained, and of how many."""
    with loading():
        from legnn.cli.console import print_error
        from legnn.experiments.plan import train_missing
        from legnn.runs.resources import default_jobs
        from legnn.sweep import LocalExecutor, SweepProgress

    if not plan.missing():
        return 0, 0
    jobs = jobs if jobs is not None else default_jobs(device)
    try:
        with (
            stop_on_signal() as should_stop,
            LocalExecutor(jobs, device) as executor,
            SweepProgress(slots=jobs) as display,
        ):
            outcomes = train_missing(plan.missing, plan.request.out, executor, display=display, should_stop=should_stop)
    except Interrupted:
        raise Interrupted(None, None, command=typed_command()) from None
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for error, number in Counter(outcome.error for outcome in failed).items():
        print_error(f"{plural(number, 'run')}: {error}")
    return len(failed), len(outcomes)


def _report(plan: Plan) -> None:
    with loading():
        from legnn.cli.console import print_path, print_text
        from legnn.experiments.reports import write_report

    report = plan.experiment.make(plan)
    files = write_report(plan, report, typed_command())
    print_text(files[0].read_text(encoding="utf-8"))
    for file in files:
        print_path(file)


def _list() -> None:
    with loading():
        from legnn.cli.display import show_experiments
        from legnn.experiments import EXPERIMENTS

    show_experiments(EXPERIMENTS.values())
