"""Collects the data of a page from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from legnn import __version__
from legnn.data import statistics
from legnn.report.payload import DataFacts, Page, RunPayload
from legnn.report.run_source import RunSource, Say
from legnn.report.scores import differing
from legnn.report.sections import SECTIONS
from legnn.report.suspicious import read_checked_labels
from legnn.runs import Predictor, open_predictor


def collect(
    runs: Sequence[Predictor | str | Path],
    *,
    nodes: Sequence[str] | None = None,
    labels: pd.DataFrame | str | Path | None = None,
    device: str = "auto",
    say: Say = lambda line: None,
) -> Page:
    """Returns the data of the page of finished runs; arguments as in `write_report`."""
    opened = [open_predictor(run) if isinstance(run, str | Path) else run for run in runs]
    checked = None if labels is None else read_checked_labels(labels)
    payloads = [
        _run_payload(RunSource(run, name, nodes, checked, device, say))
        for run, name in zip(opened, _names(opened), strict=True)
    ]
    titles = {
        name: section.title
        for name, section in SECTIONS.items()
        if any(payload.sections[name] is not None for payload in payloads)
    }
    return Page(
        version=__version__,
        sections=titles,
        runs=payloads,
        differing=differing(opened) if len(opened) > 1 else {},
    )


def _run_payload(source: RunSource) -> RunPayload:
    facts, card = statistics(source.graph), source.run.card
    return RunPayload(
        name=source.name,
        title=source.run.title,
        kind=source.run.kind,
        data=DataFacts(
            name=facts.name,
            nodes=facts.nodes,
            classes=facts.classes,
            edges=facts.edges,
            features=facts.features,
            labeled=facts.labeled,
            split_percent=[facts.train_percent, facts.val_percent, facts.test_percent],
            homophily=facts.homophily,
            types=card.types,
            target_type=card.target_type,
        ),
        classes=[str(name) for name in source.graph.class_names],
        nodes=source.table.columns(source.page_rows, source.degree),
        sections={name: section.build(source) for name, section in SECTIONS.items()},
    )


def _names(runs: Sequence[Predictor]) -> list[str]:
    """Returns the names of the folders, with those of their parents where that tells them apart."""
    paths = [None if run.folder is None else run.folder.resolve() for run in runs]
    short = [f"run {k}" if path is None else path.name for k, path in enumerate(paths, 1)]
    if len(set(short)) == len(short):
        return short
    return [name if path is None else f"{path.parent.name}/{name}" for name, path in zip(short, paths, strict=True)]
