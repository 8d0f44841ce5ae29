"""What mutations are made of: small tables, prepared folders, runs and caches, made once and copied for each."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.named import arguments

import legnn
from legnn.runs.ensemble import Member, write_ensemble

NODES, CLASSES, CHANNELS, AUTHORS, TAGS = 40, 3, 5, 12, 6
PARTS = ("train", "train", "val", "test", "")
QUICK = {"epochs": 3, "hidden": 8, "preset": "simple", "checkpoint_seconds": 0.0}
OPTIONS: dict[str, dict[str, Any]] = {"mixed": {"text": "words", "text_channels": 4}, "typed": {"type_channels": 4}}
"""Settings of the data that a folder of tables needs."""
TABLES = ("csv", "parquet", "typed", "mixed")


def build_specimens(folder: Path) -> None:
    """Writes all of them under `folder`."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    write_tables(folder / "tables")
    write_tables(folder / "other-tables", seed=1)
    for name in TABLES:
        legnn.prepare_folder(folder / "tables" / name, folder / "prepared" / name, **OPTIONS.get(name, {}))
        legnn.prepare_folder(
            folder / "tables" / name, folder / "other-prepared" / name, **OPTIONS.get(name, {}), undirected=False
        )
    write_runs(folder / "runs", folder / "tables", seed=0)
    write_runs(folder / "other-runs", folder / "tables", seed=1)


def write_tables(folder: Path, seed: int = 0) -> None:
    """The same graph as CSV, as Parquet with numbers as ids, with three node types, and with columns of all kinds."""
    random = np.random.default_rng(seed)
    y = np.arange(NODES) % CLASSES
    x = random.normal(size=(NODES, CHANNELS)).astype(np.float32)
    x[np.arange(NODES), y] += 2
    ends = random.integers(0, NODES, (2, 3 * NODES))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) | (random.random(3 * NODES) < 0.3)]
    split = [PARTS[part] for part in (np.arange(NODES) // CLASSES) % len(PARTS)]
    label = [f"class {c}" if part else "" for c, part in zip(y, split, strict=True)]
    features = {f"f{column}": x[:, column] for column in range(CHANNELS)}
    names = np.array([f"n{i}" for i in range(NODES)])
    nodes = pd.DataFrame({"id": names, "label": label, "split": split, **features})
    edges = pd.DataFrame({"source": names[ends[0]], "target": names[ends[1]]})
    for name in TABLES:
        (folder / name).mkdir(parents=True)
    nodes.to_csv(folder / "csv" / "nodes.csv", index=False)
    edges.to_csv(folder / "csv" / "edges.csv", index=False)
    numbered = nodes.assign(id=7 * np.arange(NODES), label=np.where(np.array(split) == "", None, y * 10))
    numbered.astype({"label": "Int64"}).to_parquet(folder / "parquet" / "nodes.parquet", index=False)
    pd.DataFrame(
        {"source": 7 * ends[0], "target": 7 * ends[1], "weight": random.random(ends.shape[1]) + 0.5}
    ).to_parquet(folder / "parquet" / "edges.parquet", index=False)
    words = np.array(["graph", "label", "node", "edge", "paper", "tree"])
    texts = [" ".join(words[[c, c + 3, random.integers(6)]]) for c in y]
    others = {
        "color": [("red", "green", "")[(i + seed) % 3] for i in range(NODES)],
        "born": [f"20{10 + i % 12}-05-31" for i in range(NODES)],
        "height": ["" if i % 11 == 5 else f"{1.5 + i / 100:.2f}" for i in range(NODES)],
    }
    mixed = nodes[["id", "label", "split", "f0"]].assign(words=texts, **others)
    mixed.to_csv(folder / "mixed" / "nodes.csv", index=False)
    edges.to_csv(folder / "mixed" / "edges.csv", index=False)
    _write_typed(folder / "typed", nodes, edges, random)


def _write_typed(folder: Path, papers: pd.DataFrame, cites: pd.DataFrame, random: np.random.Generator) -> None:
    (folder / "nodes").mkdir()
    (folder / "edges").mkdir()
    papers.to_csv(folder / "nodes" / "paper.csv", index=False)
    authors = pd.DataFrame({"id": [f"a{i}" for i in range(AUTHORS)], "age": random.normal(size=AUTHORS)})
    authors.to_csv(folder / "nodes" / "author.csv", index=False)
    cites.to_csv(folder / "edges" / "paper__cites__paper.csv", index=False)
    by = [f"a{i}" for i in random.integers(0, AUTHORS, NODES)]
    pd.DataFrame({"source": by, "target": papers["id"]}).to_csv(
        folder / "edges" / "author__writes__paper.csv", index=False
    )
    # tags have no table: their features are computed from the graph, and kept in the cache
    tags = [f"t{i}" for i in random.integers(0, TAGS, NODES)]
    pd.DataFrame({"source": papers["id"], "target": tags}).to_csv(folder / "edges" / "paper__has__tag.csv", index=False)


def write_runs(folder: Path, tables: Path, seed: int) -> None:
    """Runs that are finished, half-way, with several seeds, and an ensemble; other seeds make others of each."""
    given = {**QUICK, "seed": seed}
    legnn.train(tables / "csv", **arguments(**given), out=folder / "finished")
    for name in ("mixed", "typed"):
        legnn.train(tables / name, **arguments(**given, **OPTIONS[name]), out=folder / f"finished-{name}")
    for name in ("csv", "mixed"):
        _cut(tables / name, folder / f"cut-{name}", **given, **OPTIONS.get(name, {}))
    legnn.train_seeds(tables / "csv", **arguments(**given), seeds=2, out=folder / "seeds")
    shutil.copytree(folder / "seeds", folder / "seeds-cut")
    last = folder / "seeds-cut" / f"seed-{seed + 1}"
    shutil.rmtree(last)
    (folder / "seeds-cut" / "summary.json").unlink()
    _cut(tables / "csv", last, **{**given, "seed": seed + 1})
    shutil.copytree(folder / "finished", folder / "ensemble" / "one")
    legnn.train(tables / "csv", **arguments(**{**given, "seed": seed + 2}), out=folder / "ensemble" / "two")
    settings = {"propagation_steps": 5, "propagation_alpha": 0.5}
    members = [Member(folder=name, weight=0.5, **settings) for name in ("one", "two")]
    write_ensemble(folder / "ensemble", members, 1.0 + seed, seconds=1.0)


def _cut(data: Path, out: Path, **given: Any) -> None:
    done: list[object] = []
    try:
        legnn.train(data, **arguments(**given), out=out, on_epoch=done.append, should_stop=lambda: len(done) >= 2)
    except legnn.Interrupted:
        return
    raise AssertionError(f"{out} should have been interrupted")
