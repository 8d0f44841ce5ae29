"""`auto`: from data and a budget to one ensemble in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from legnn.automl.clock import Clock
from legnn.automl.cost import CPU, GPU, Size, order_by_cost
from legnn.automl.leaderboard import choose, entries_of, leaderboard, members_of
from legnn.automl.search import Plan, Row, Search
from legnn.automl.sharing import WAIT_SECONDS, Share, meet, without_torchrun
from legnn.config import CommonSettings, Settings, collect
from legnn.config.candidates import CANDIDATES
from legnn.config.duration import parse_duration
from legnn.config.portfolio import learned_portfolio
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted, plural
from legnn.files import atomic_write, write_text
from legnn.io.prepared import write_prepared
from legnn.io.prepared_card import CARD
from legnn.locks import contents, hold_folder
from legnn.nn.backbones import require_known_everywhere
from legnn.notes import Note
from legnn.runs.device import visible_gpus
from legnn.runs.ensemble import Ensemble, write_ensemble
from legnn.runs.folder import LEADERBOARD, SEARCH
from legnn.runs.graphs import MEMORY, load_new
from legnn.runs.resources import default_jobs
from legnn.sweep.held_out import labels_of, require_validation
from legnn.typed_json import read_json, write_json

BEST = "best.yaml"
GRAPH = "graph"
"""Folder for data that were given in memory: worker processes and later predictions read them there."""
QUICK = "label-propagation"
"""Comes first, for it takes no time: there is a result whatever the budget."""


@dataclass(frozen=True, kw_only=True)
class SearchCard:
    """The search that a folder belongs to."""

    source: str
    fingerprint: str
    seed: int


def auto(
    data: Source,
    *,
    settings: Settings | Mapping[str, Any] | None = None,
    budget: float | str = "10m",
    out: str | Path | None = None,
    single: bool = False,
    jobs: int | None = None,
    only: Sequence[str] | None = None,
    on_progress: Callable[[Sequence[Row], Clock], None] = lambda rows, clock: None,
    should_stop: Callable[[], bool] = lambda: False,
    **common: Unpack[CommonSettings],
) -> Ensemble:
    """Tries the portfolio and changes of its leaders within a budget, and returns an ensemble of the best.

    >>> ensemble = legnn.auto("cora", budget="2m")
    >>> ensemble.result.test["accuracy"]

    Args:
        data: as in `train`.
        budget: seconds, or a time such as `"90s"` or `"10m"`, for everything. A search that was interrupted, or has a
            larger budget now, continues in `out`.
        out: folder of the search, `runs/DATA-auto` if it is not given; its candidates are run folders in it.
        single: return the best single model, as an ensemble of one.
        jobs: candidates that train at a time; by default one a core, or one a GPU.
        only: names from `CANDIDATES` in the place of the portfolio.
        on_progress: called about twice a second with the leaderboard and the time.
        should_stop: asked as often; True writes checkpoints and raises `Interrupted`.
        settings: of every candidate, by dotted name.
        **common: common settings of every candidate: `auto("cora", budget=60, device="cpu")`. `seed` is that of the
            changes, too.

    Members and weights are chosen by validation nodes alone. Under `torchrun` the processes share the candidates.
    """
    seconds = parse_duration(str(budget))
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    given = collect(settings, common).values
    seed = given.get("train.seed", 0)
    require_known_everywhere(given.get("model.backbone", ""))
    folder = new_folder(data) if out is None else Path(out)
    # each candidate is locked by the process that trains it, the folder of the search by the first one
    with without_torchrun() as share, nullcontext() if share.rank else hold_folder(folder):
        clock = Clock(folder / "time.json", seconds)
        graph, source = _load(data, folder, given)
        require_validation(graph)
        facts = graph.facts()
        candidates = _candidates(only or [QUICK, *learned_portfolio().order(facts)], given, seed)
        card = SearchCard(source=source, fingerprint=graph.fingerprint(), seed=seed)
        _open_folder(folder, card, graph, share)
        device = str(given.get("train.device", "auto"))
        gpus = visible_gpus(device)
        jobs = jobs or (1 if share.world_size > 1 else default_jobs(device))
        size = Size(graph.num_nodes, graph.num_edges, graph.num_classes)
        speed = GPU if gpus else CPU
        plan = Plan(
            folder=folder,
            source=source,
            facts=facts,
            num_val=int(graph.val_mask.sum()),
            candidates=candidates,
            order=order_by_cost(candidates, size, speed, clock.left * jobs * share.world_size),
            given=given,
            seed=seed,
            rank=share.rank,
            world_size=share.world_size,
        )
        search = Search(plan, clock)
        search.run(
            jobs,
            gpus=gpus,
            on_progress=lambda rows: on_progress(rows, clock),
            should_stop=should_stop,
        )
        if should_stop():
            raise Interrupted(None, folder)
        meet(folder, share, clock)
        if share.rank:
            return Ensemble.open(folder)
        if not any(one.state == "finished" for one in plan.folders().values()):
            # starting a process alone may have taken all of the time
            search.train_here(QUICK)
        return _finish(plan, clock, graph, single=single)


def new_folder(data: Source) -> Path:
    """Returns `runs/DATA-auto`, with a number where that is taken."""
    if "RANK" in os.environ:
        raise InputError("the processes of torchrun share the folder of a search; give it as `out`")
    name = Path(data).resolve().name if isinstance(data, str | Path) else MEMORY
    place, number = Path("runs") / f"{name}-auto", 2
    while place.exists():
        place, number = Path("runs") / f"{name}-auto-{number}", number + 1
    return place


def _finish(plan: Plan, clock: Clock, graph: GraphData, *, single: bool) -> Ensemble:
    """Chooses the members, predicts with them, and writes what the search came to."""
    folders = plan.folders()
    finished = [(name, one) for name, one in folders.items() if one.state == "finished"]
    if not finished:
        failed = [f"; {name}: {one.failure()}" for name, one in folders.items() if one.state == "failed"]
        why = failed[0] if failed else "; give a larger `budget`"
        raise InputError(f"no candidate was trained in {clock.used:.0f} s{why}")
    entries = entries_of(finished)
    y_val = labels_of(graph, "val")
    chosen = choose(entries, y_val, single=single)
    table = leaderboard(entries, chosen, y_val, labels_of(graph, "test"))
    with atomic_write(plan.folder / LEADERBOARD) as file:
        table.to_csv(file, index=False)
    best = entries[chosen.single]
    write_text(plan.folder / BEST, best.settings.to_yaml())
    members = members_of(entries, chosen)
    text = f"The ensemble of {plural(len(members), 'member')} was chosen from {plural(len(finished), 'candidate')}."
    ensemble = write_ensemble(
        plan.folder,
        members,
        chosen.temperature,
        seconds=clock.used,
        notes=[Note("ensemble", text)],
        device=str(plan.given.get("train.device", "auto")),
    )
    clock.finish()
    return ensemble


def _candidates(names: Sequence[str], given: Mapping[str, Any], seed: int) -> dict[str, dict[str, Any]]:
    """The settings of candidates by name, without those that differ from what is given."""
    unknown = [name for name in names if name not in CANDIDATES]
    if unknown:
        raise InputError(f"there is no candidate {unknown[0]!r}; choose from {', '.join(CANDIDATES)}")
    found = {}
    for name in dict.fromkeys(names):
        values = CANDIDATES[name].values
        if all(values.get(key, value) == value for key, value in given.items() if key not in _FREE):
            found[name] = {"train.seed": seed, **values}
    if not found:
        raise InputError("no candidate of the portfolio has the settings that are given; leave some of them out")
    return found


_FREE = tuple(
    f"train.{name}" for name in ("epochs", "patience", "batch", "fanout", "device", "precision", "checkpoint_seconds")
)
"""Settings that may be given whatever a candidate says."""


def _load(data: Source, folder: Path, given: Mapping[str, Any]) -> tuple[GraphData, str]:
    """The graph and its source, from which worker processes read it."""
    of_data = {name: value for name, value in given.items() if name.startswith("data.")}
    graph, settings = load_new(Settings(values=of_data), data)
    if settings.data.source != MEMORY:
        return graph, settings.data.source
    return graph, str((folder / GRAPH).resolve())


def _open_folder(folder: Path, card: SearchCard, graph: GraphData, share: Share) -> None:
    """Makes the folder of a search; raises `InputError` for one that holds something else, or another search."""
    place = Path(card.source)
    is_in_memory = place == (folder / GRAPH).resolve()
    if share.rank:
        # the first process decides, and ends all if it refuses the folder
        while not (folder / SEARCH).is_file() or (is_in_memory and not (place / CARD).is_file()):
            time.sleep(WAIT_SECONDS)
    _check_folder(folder, card)
    # after the check: not a file is left in a folder that is refused
    if is_in_memory and not (place / CARD).is_file():
        write_prepared(place, graph)


def _check_folder(folder: Path, card: SearchCard) -> None:
    if (folder / SEARCH).is_file():
        before = read_json(folder / SEARCH, SearchCard)
        if before != card:
            what = "data" if before.fingerprint != card.fingerprint else "source or seed"
            raise InputError(f"{folder} holds a search on another {what}; give another folder as `out`")
        return
    if contents(folder):
        raise InputError(f"{folder} is already there and holds no search; give another folder as `out`")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / SEARCH, card)
