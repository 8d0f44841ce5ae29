"""`auto`: from data and a budget to one ensemble in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from legnn.config import CommonSettings, GraphFacts, Settings, TrainSettings, collect
from legnn.config.candidates import CANDIDATES
from legnn.config.duration import parse_duration
from legnn.config.portfolio import learned_portfolio
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, plural
from legnn.files import atomic_write, free_path, write_text
from legnn.locks import hold_folder
from legnn.nn.backbones import REGISTERED
from legnn.notes import Note
from legnn.runs.device import visible_gpus
from legnn.runs.ensemble import Ensemble, write_ensemble
from legnn.runs.folder import LEADERBOARD, SEARCH, check_free
from legnn.runs.graphs import MEMORY
from legnn.runs.processes import under_torchrun
from legnn.runs.resources import default_jobs
from legnn.search.budget import Budget
from legnn.search.cost import CPU, GPU, Size, order_by_cost
from legnn.search.leaderboard import choose, entries_of, leaderboard, members_of
from legnn.search.samplers import Grid, Portfolio, Sampler, SamplerName, Space, SpaceName, Tpe, check_optuna
from legnn.search.search import Search
from legnn.sweep import Executor, LocalExecutor, SerialExecutor, Sweep
from legnn.sweep.held_out import labels_of, require_validation
from legnn.sweep.progress import show_progress
from legnn.sweep.sweep import write_graph
from legnn.sweep.tasks import load_data
from legnn.typed_json import read_json, write_json

BEST = "best.yaml"
QUICK = "label-propagation"
"""Comes first, for it takes no time: there is a result whatever the budget."""


@dataclass(frozen=True, kw_only=True)
class SearchCard:
    """The content of `search.json`: which search a folder belongs to."""

    source: str
    fingerprint: str
    seed: int
    space: SpaceName
    sampler: SamplerName
    values: dict[str, str | int | float | bool] = field(default_factory=dict, compare=False)
    budget: str = field(default="10m", compare=False)
    trials: int | None = field(default=None, compare=False)
    single: bool = field(default=False, compare=False)
    only: list[str] | None = field(default=None, compare=False)
    """With these a search that was interrupted is continued; they may differ where it is continued by hand."""


def auto(
    data: Source,
    *,
    settings: Settings | Mapping[str, Any] | None = None,
    budget: float | str = "10m",
    trials: int | None = None,
    space: SpaceName = "wide",
    sampler: SamplerName = "portfolio",
    out: str | Path | None = None,
    single: bool = False,
    jobs: int | None = None,
    only: Sequence[str] | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    **common: Unpack[CommonSettings],
) -> Ensemble:
    """Trains candidates within a budget, and returns an ensemble of the best.

    >>> ensemble = legnn.auto("cora", budget="2m")
    >>> ensemble.result.test["accuracy"]

    Args:
        data: as in `train`.
        settings: of every candidate, by dotted name.
        budget: seconds, or a time such as `"90s"` or `"10m"`, for everything. A search that was interrupted, or has a
            larger budget now, continues in `out`.
        trials: most candidates.
        space: settings that are searched: `wide`, all that matter, or `paper`, the grid of the paper.
        sampler: `portfolio`, settings that did well on other graphs and changes of the leaders; `tpe`, suggestions of
            Optuna; or `grid`, all combinations of the paper's grid.
        out: folder of the search, `runs/DATA-auto` if it is not given; its candidates are run folders in it.
        single: return the best single model, as an ensemble of one.
        jobs: candidates that train at a time; by default one a core, or one a GPU.
        only: names from `CANDIDATES` in the place of the portfolio.
        executor: trains the candidates; by default processes of this machine.
        progress: whether a line shows the progress.
        should_stop: asked after every epoch; True writes checkpoints and raises `Interrupted`.
        **common: common settings of every candidate: `auto("cora", budget=60, device="cpu")`. `seed` is that of the
            search, too.

    Members and weights are chosen by validation nodes alone, by accuracy; `choose_by` chooses the epoch of a candidate.
    """
    if under_torchrun():
        raise InputError("auto starts its own processes, one for each GPU; start it without torchrun")
    for name, number in (("trials", trials), ("jobs", jobs)):
        if number is not None and number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    _check_sampler(space, sampler, only)
    user = collect(settings, common)
    seed = user.values.get("train.seed", 0)
    folder = new_folder(data) if out is None else Path(out)
    with hold_folder(folder):
        clock = Budget(folder / "time.json", parse_duration(str(budget)))
        graph, loaded, source = load_data(user, data)
        require_validation(graph)
        if not isinstance(source, str):
            source = str((folder / "graph").resolve())
        candidates = _candidates(only or [QUICK, *learned_portfolio().order(graph.facts())], user.values, seed)
        card = SearchCard(
            source=source,
            fingerprint=graph.fingerprint(),
            seed=seed,
            space=space,
            sampler=sampler,
            values=dict(user.values),
            budget=str(budget),
            trials=trials,
            single=single,
            only=None if only is None else list(only),
        )
        _check_folder(folder, card)
        if loaded.data.source == MEMORY:
            # the runs name its folder, so that they can be opened without the data
            write_graph(folder, graph)
        device = str(user.values.get("train.device", "auto"))
        slots = default_jobs(device) if jobs is None else jobs
        if executor is None:
            is_registered = user.values.get("model.backbone") in REGISTERED
            executor = SerialExecutor() if is_registered else LocalExecutor(slots, device)
        values = {**user.values, "data.source": source}
        search = Search(
            folder=folder,
            data=source,
            values=values,
            sampler=_sampler(sampler, space, candidates, values, graph, seed, clock.left * slots, device),
            budget=clock,
            num_val=int(graph.val_mask.sum()),
            most_trials=trials,
        )
        with executor, show_progress(progress, trials, seconds_left=lambda: clock.left, slots=slots) as display:

            def on_event(event: Any) -> None:
                search.on_event(event)
                display.on_event(event)

            for outcome in Sweep(folder, search.trials()).run(executor, on_event=on_event, should_stop=should_stop):
                search.note(outcome)
                display.on_outcome(outcome)
        if not search.finished():
            # starting a process alone may have taken all of the time
            _train_quick(search, folder)
        order = {name: position for position, name in enumerate(candidates)}
        names = sorted(search.finished(), key=lambda name: order.get(name, len(order)))
        return _finish(search, names, graph, device, single=single)


def resume_search(folder: Path, **options: Any) -> Ensemble:
    """Continues an interrupted search with the budget and settings that it was begun with; options as in `auto`."""
    card = read_json(folder / SEARCH, SearchCard)
    return auto(
        card.source,
        settings=card.values,
        budget=card.budget,
        trials=card.trials,
        space=card.space,
        sampler=card.sampler,
        out=folder,
        single=card.single,
        only=card.only,
        **options,
    )


def _check_sampler(space: str, sampler: str, only: Sequence[str] | None) -> None:
    for name, value, choices in (
        ("space", space, ("wide", "paper")),
        ("sampler", sampler, ("portfolio", "tpe", "grid")),
    ):
        if value not in choices:
            raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    if sampler == "portfolio" and space == "paper":
        raise InputError("the portfolio is searched in the wide space; give `sampler=grid` or `sampler=tpe`")
    if sampler == "grid" and space == "wide":
        raise InputError("the wide space has no grid; give `space=paper`, or `sampler=tpe`")
    if sampler != "portfolio" and only is not None:
        raise InputError("only names candidates of the portfolio; leave it out, or the sampler")
    if sampler == "tpe":
        check_optuna()


def _sampler(
    sampler: SamplerName,
    space: SpaceName,
    candidates: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, Any],
    graph: GraphData,
    seed: int,
    seconds: float,
    device: str,
) -> Sampler:
    facts: GraphFacts = graph.facts()
    if sampler == "portfolio":
        size = Size(graph.num_nodes, graph.num_edges, graph.num_classes)
        order = order_by_cost(candidates, size, GPU if visible_gpus(device) else CPU, seconds)
        return Portfolio({name: candidates[name] for name in order}, values, facts, seed)
    preset = "paper" if space == "paper" else Settings.preset
    searched = Space(Settings(preset=preset, values={"train.seed": seed, **values}), facts, space)
    return Grid(searched, seed) if sampler == "grid" else Tpe(searched, seed)


def _train_quick(search: Search, folder: Path) -> None:
    proposal = search.sampler.propose({}, {})
    if proposal is not None and proposal.name == QUICK:
        search.add(proposal)
        for outcome in Sweep(folder, [search.trial(proposal.name, is_limited=False)]).run(SerialExecutor()):
            search.note(outcome)


def new_folder(data: Source) -> Path:
    """Returns `runs/DATA-auto`, with a number if that folder exists."""
    name = Path(data).resolve().name if isinstance(data, str | Path) else MEMORY
    return free_path(Path("runs") / f"{name}-auto")


def _finish(search: Search, names: Sequence[str], graph: GraphData, device: str, *, single: bool) -> Ensemble:
    """Chooses the members, predicts with them, and writes the leaderboard and the ensemble."""
    if not names:
        why = "; ".join(search.failures()[:1]) or "give a larger `budget`"
        raise InputError(f"no candidate was trained in {search.budget.used:.0f} s; {why}")
    entries = entries_of([search.path(name) for name in names])
    y_val = labels_of(graph, "val")
    chosen = choose(entries, y_val, single=single)
    table = leaderboard(entries, chosen, y_val, labels_of(graph, "test"))
    with atomic_write(search.folder / LEADERBOARD) as file:
        table.to_csv(file, index=False)
    write_text(search.folder / BEST, entries[chosen.single].settings.to_yaml())
    members = members_of(entries, chosen)
    text = f"The ensemble of {plural(len(members), 'member')} was chosen from {plural(len(names), 'candidate')}."
    notes = [Note("ensemble", text)]
    choose_by = search.values.get("train.choose_by", TrainSettings.choose_by)
    if choose_by != TrainSettings.choose_by:
        text = f"{choose_by} chose the epoch of each candidate; candidates and members are compared by accuracy."
        notes.append(Note("compared-by-accuracy", text))
    ensemble = write_ensemble(
        search.folder,
        members,
        chosen.temperature,
        seconds=search.budget.used,
        notes=notes,
        device=device,
    )
    search.budget.finish()
    return ensemble


def _candidates(names: Sequence[str], fixed: Mapping[str, Any], seed: int) -> dict[str, dict[str, Any]]:
    """The settings of candidates by name, without those that differ from the settings of the user."""
    unknown = [name for name in names if name not in CANDIDATES]
    if unknown:
        raise InputError(f"there is no candidate {unknown[0]!r}; choose from {', '.join(CANDIDATES)}")
    candidates = {}
    for name in dict.fromkeys(names):
        values = CANDIDATES[name].values
        if all(values.get(key, value) == value for key, value in fixed.items() if key not in _FREE):
            candidates[name] = {"train.seed": seed, **values}
    if not candidates:
        raise InputError("no candidate of the portfolio has the settings that are given; leave some of them out")
    return candidates


_FREE = tuple(
    f"train.{name}" for name in ("epochs", "patience", "batch", "fanout", "device", "precision", "checkpoint_seconds")
)
"""Settings that may be given whatever a candidate says."""


def _check_folder(folder: Path, card: SearchCard) -> None:
    """Raises `InputError` for a folder that holds something else, or another search."""
    if not (folder / SEARCH).is_file():
        check_free(folder)
        write_json(folder / SEARCH, card)
        return
    before = read_json(folder / SEARCH, SearchCard)
    if before != card:
        difference = (
            "other data" if before.fingerprint != card.fingerprint else "another source, seed, space or sampler"
        )
        raise InputError(f"{folder} holds a search with {difference}; give another folder as `out`")
