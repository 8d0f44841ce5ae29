"""A sweep: trains a list of runs into one folder, each once, several at a time, and resumes after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from legnn.data import GraphData
from legnn.errors import InputError, Interrupted, LegnnError
from legnn.files import digest_bytes, write_text
from legnn.io.prepared import write_prepared
from legnn.io.prepared_card import CARD, read_card
from legnn.locks import clear_folder, hold_folder
from legnn.runs.digests import write_digests
from legnn.runs.folder import RunFolder, check_free
from legnn.sweep.executors import Executor
from legnn.sweep.held_out import HELD_OUT
from legnn.sweep.plan import Plan, Trial
from legnn.sweep.progress import show_progress
from legnn.sweep.tasks import FAILURE, GRAPH, Event, Outcome, Task, resolve_task
from legnn.typed_json import to_json


@dataclass(frozen=True)
class Sweep:
    """Trains a list of runs into one folder, each once, several at a time, and resumes after an interruption.

    >>> with LocalExecutor(slots=2) as executor:
    ...     for outcome in Sweep(folder, trials).run(executor):
    ...         outcome.raise_error()
    """

    folder: Path
    trials: Iterable[Trial | None]
    """Read one at a time, whenever a run can begin. None stands for "no trial now": more are read after the next
    outcome. A trial may appear again, to continue it to a later epoch."""

    def run(
        self,
        executor: Executor,
        *,
        on_event: Callable[[Event], None] = lambda event: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[Outcome]:
        """Trains what is not finished and yields an outcome for every trial, in the order in which they end.

        Args:
            executor: trains the runs.
            on_event: called with the progress of every run.
            should_stop: asked after every epoch; True writes checkpoints and raises `Interrupted`.
        """
        with hold_folder(self.folder, again=True):
            plan, trials, ended = Plan(self.folder), iter(self.trials), list[Outcome]()

            def next_task() -> Task | None:
                for trial in trials:
                    if trial is None:
                        return None
                    if (outcome := self._prepare(plan, task := self._task(trial))) is None:
                        return task
                    ended.append(outcome)
                return None

            for outcome in executor.run(next_task, on_event, should_stop):
                ended.append(outcome)
                while ended:
                    yield self._note(ended.pop(0))
            while ended:
                yield self._note(ended.pop(0))
            if should_stop():
                raise Interrupted(None, self.folder)

    def _note(self, outcome: Outcome) -> Outcome:
        # another process that trains a run is no fault of the run
        if outcome.state == "failed" and outcome.kind != "FolderInUse":
            write_text(self.folder / outcome.trial / FAILURE, outcome.error)
        return outcome

    def _task(self, trial: Trial) -> Task:
        data = trial.data if isinstance(trial.data, str) else write_graph(self.folder, trial.data)
        return Task(
            name=trial.name,
            folder=str(self.folder / trial.name),
            data=data,
            preset=trial.settings.preset,
            values=dict(trial.settings.values),
            hidden_fold=trial.hidden_fold,
            epochs=trial.epochs,
            held_out=trial.held_out,
            deadline=trial.deadline,
        )

    def _prepare(self, plan: Plan, task: Task) -> Outcome | None:
        """Adds a task to the plan; returns its outcome if nothing has to be trained, or nothing can be."""
        try:
            graph, settings = resolve_task(task)
        except (LegnnError, OSError) as error:
            return Outcome.of_error(task.name, error)
        plan.add(task.name, task.settings, settings, graph.fingerprint())
        if is_finished(Path(task.folder), held_out=task.held_out):
            return Outcome(trial=task.name, state="finished")
        return None


def train_trials(
    folder: Path,
    trials: Sequence[Trial],
    executor: Executor,
    on_event: Callable[[Event], None],
    should_stop: Callable[[], bool],
    *,
    progress: bool,
) -> None:
    """Trains all trials, and raises the error of the first one that cannot be trained."""
    with executor, show_progress(progress, len(trials)) as display:

        def on_each(event: Event) -> None:
            display.on_event(event)
            on_event(event)

        for outcome in Sweep(folder, trials).run(executor, on_event=on_each, should_stop=should_stop):
            outcome.raise_error()
            display.on_outcome(outcome)


@contextmanager
def sweep_folder(out: str | Path | None) -> Iterator[Path]:
    """Context with the folder of a sweep, which is removed at the end if the user named none."""
    if out is not None:
        with hold_folder(Path(out)):
            yield Path(out)
        return
    with TemporaryDirectory(prefix="legnn-") as folder:
        try:
            yield Path(folder)
        except Interrupted as stop:
            raise Interrupted(stop.epoch, None) from None


def create_folder(folder: Path, name: str, content: Any) -> None:
    """Writes the file that says what a new folder of runs holds; raises `InputError` if the folder is not free."""
    check_free(folder)
    clear_folder(folder)
    text = to_json(content)
    write_digests(folder, {name: digest_bytes(text.encode())})
    # last: a folder without it is one whose creation was cut short
    write_text(folder / name, text)


def is_finished(folder: Path, *, held_out: bool) -> bool:
    """Whether a run came to its end, and wrote probabilities of held-out nodes if they are wanted."""
    return RunFolder(folder).is_finished and (not held_out or (folder / HELD_OUT).is_file())


def write_graph(folder: Path, graph: GraphData) -> str:
    """Writes a graph in memory to the folder of a sweep, once, and returns where all processes read it."""
    path = (folder / GRAPH).resolve()
    if not (path / CARD).is_file():
        write_prepared(path, graph)
    elif read_card(path).fingerprint != graph.fingerprint():
        raise InputError(f"{folder} is a sweep on other data; give the same data again, or another folder as `out`")
    return str(path)
