"""Mutations of run folders, prepared folders and caches: refused, or the same result to the bit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.named import arguments

import legnn
from benchmarks.campaign.cases import Case
from benchmarks.campaign.commands import command
from benchmarks.campaign.damage import OF_BYTES, OF_PLACE, damage
from benchmarks.campaign.results import digest, frame_digest, graph_digest, result_digest, run_digest, without_clocks
from benchmarks.campaign.specimens import OPTIONS, QUICK, TABLES
from legnn.datasets import check_prepared
from legnn.runs import RunFolder, open_predictor
from legnn.runs.folder import PREDICTIONS, RESULT, SUMMARY
from legnn.sweep.seeds import resume_seeds

RUNS = ("finished", "finished", "finished-mixed", "finished-typed", "cut-csv", "cut-csv", "cut-mixed", "seeds",
        "seeds-cut", "ensemble")  # fmt: skip

Actions = dict[str, Callable[[], str]]


def _folder_case(
    random: Random,
    specimens: Path,
    place: Path,
    specimen: tuple[str, str],
    folder: Path,
    actions_of: Callable[[str, Path, Path, Path], Actions],
    outputs: list[Path],
) -> Case:
    """A copy of a specimen, by its kind and name, at `folder` with one of its files damaged."""
    kind, name = specimen
    _copy(specimens / kind / name, folder)
    about = _damage_one(random, folder, specimens / f"other-{kind}" / name)
    return Case(
        about=f"{name}/{about}",
        actions=_chosen(random, actions_of(name, folder, place, specimens)),
        expected=_expected(
            f"{kind}/{name}", lambda clean: actions_of(name, clean, clean.parent, specimens), specimens, place
        ),
        guarded=folder,
        outputs=outputs,
        may_differ=any(name in about for name in (PREDICTIONS, RESULT, SUMMARY)),
    )


def run_case(random: Random, specimens: Path, place: Path) -> Case:
    """A run folder, finished or not, with one of its files damaged."""
    outputs = [place / "predictions.parquet", place / "evaluation.json", place / "curves.png"]
    return _folder_case(random, specimens, place, ("runs", random.choice(RUNS)), place / "run", run_actions, outputs)


def run_actions(name: str, folder: Path, place: Path, specimens: Path) -> Actions:
    """What a user does with a run folder."""
    if name == "seeds-cut":
        return {
            "resume": lambda: run_digest(resume_seeds(folder)),
            "open": lambda: run_digest(open_predictor(folder)),
        }
    if name.startswith("cut"):
        return {"resume": lambda: _resumed(folder)}
    found: Actions = {
        "open": lambda: run_digest(open_predictor(folder)),
        "predict": lambda: frame_digest(open_predictor(folder).predict_proba()),
        "evaluate": lambda: digest(open_predictor(folder).evaluate()),
        "legnn predict": lambda: command(["predict", folder, "--out", place / "predictions.parquet"], place),
        "legnn evaluate": lambda: command(["evaluate", folder, "--out", place / "evaluation.json"], place),
    }
    if "typed" not in name:  # whose features exist for no other graph
        data = specimens / "other-tables" / ("mixed" if "mixed" in name else "csv")
        found["predict another graph"] = lambda: frame_digest(open_predictor(folder).predict_proba(data))
    if name == "seeds":
        found["resume"] = lambda: run_digest(resume_seeds(folder))
    elif name.startswith("finished"):
        found["resume"] = lambda: run_digest(legnn.resume(folder))
        found["log"] = lambda: digest([without_clocks(log) for log in RunFolder.open(folder).logs()])
    return found


def _resumed(folder: Path, data: Path | None = None) -> str:
    """Resumes, and digests what came of it in memory and in the folder."""
    run = legnn.resume(folder, data)
    return digest(frame_digest(run.predictions), result_digest(run.result)) + run_digest(open_predictor(folder))


def prepared_case(random: Random, specimens: Path, place: Path) -> Case:
    """A prepared folder with one of its files damaged."""
    name = random.choice(TABLES)
    folder = place / "prepared" / name
    return _folder_case(random, specimens, place, ("prepared", name), folder, prepared_actions, [place / "trained"])


def prepared_actions(name: str, folder: Path, place: Path, specimens: Path) -> Actions:
    """What a user does with a prepared folder."""
    finished = specimens / "runs" / {"csv": "finished", "parquet": "finished"}.get(name, f"finished-{name}")

    def train() -> str:
        run = legnn.train(folder, **arguments(**QUICK), out=place / "trained")
        return digest(frame_digest(run.predictions), result_digest(run.result))

    found: Actions = {
        "load": lambda: graph_digest(legnn.load(folder)),
        "check": lambda: graph_digest(check_prepared(folder)),
        "train": train,
    }
    if name != "parquet":
        found["predict"] = lambda: frame_digest(legnn.open(finished).predict_proba(folder))
    if name in ("csv", "mixed"):
        cut = specimens / "runs" / f"cut-{name}"
        found["resume"] = lambda: _resumed(_copy(cut, place / "resumed"), folder)
    return found


def cache_case(random: Random, specimens: Path, place: Path) -> Case:
    """The cache of computed features with a file damaged: computed again, without a word."""
    cache = specimens / "caches" / "embeddings"
    folder = _copy(cache, place / "cache")
    about = _damage_one(random, folder, None)
    return Case(
        about=f"embeddings/{about}",
        actions={"embeddings": lambda: load_typed(specimens, folder)},
        expected=lambda _: load_typed(specimens, cache),
    )


def load_typed(specimens: Path, cache: Path) -> str:
    """Loads a graph some of whose features are computed, and kept in `cache`."""
    before = os.environ.get("XDG_CACHE_HOME", "")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    try:
        return graph_digest(legnn.load(specimens / "tables" / "typed", **OPTIONS["typed"]))
    finally:
        os.environ["XDG_CACHE_HOME"] = before


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


def _damage_one(random: Random, folder: Path, other: Path | None) -> str:
    """Damages a file, or swaps two of them; says which and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = random.choice(files)
    name = str(path.relative_to(folder))
    if len(files) > 1 and random.random() < 0.05:
        second = random.choice([one for one in files if one != path])
        content = path.read_bytes()
        path.write_bytes(second.read_bytes())
        second.write_bytes(content)
        return f"{name}: exchanged with {second.name}"
    if other is None:
        return f"{name}: {random.choice([*OF_BYTES, *OF_PLACE])(random, path, None)}"
    # the other run has other seeds, and folders that are named by them
    names = [name, name.replace("seed-1", "seed-2").replace("seed-0", "seed-1")]
    twin = next((other / one for one in names if (other / one).is_file()), None)
    return f"{name}: {damage(random, path, twin)}"


def _chosen(random: Random, actions: Actions) -> Actions:
    """Two of the actions, or all where there are no more."""
    names = random.sample([*actions], 2) if len(actions) > 2 else [*actions]
    return {name: actions[name] for name in names}


_known: dict[str, str] = {}


def _expected(key: str, actions: Callable[[Path], Actions], specimens: Path, place: Path) -> Callable[[str], str]:
    """Returns what an action comes to on a clean copy, which is found once in a process."""

    def find(name: str) -> str:
        known = json.dumps([str(specimens), key, name])
        if known not in _known:
            clean = _copy(specimens / key, place / "clean" / Path(key).name)
            every = actions(clean)
            # where there are only two, the second goes on with what the first has made
            for one in [name] if len(every) > 2 else every:
                _known[json.dumps([str(specimens), key, one])] = every[one]()
        return _known[known]

    return find
