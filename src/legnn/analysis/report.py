"""Everything that is measured of finished runs: one table of all of them, and files of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from legnn.analysis.calibration import draw_reliability, expected_calibration_error, reliability
from legnn.analysis.clustering import choose_nodes, cluster
from legnn.analysis.cost import inference_seconds
from legnn.analysis.curves import draw_curves
from legnn.analysis.label_similarity import cosine_similarity, draw_label_similarity, most_similar_pairs
from legnn.analysis.projection import draw_projection, tsne
from legnn.analysis.pseudo_labels import accuracy_by_band, first_epoch_with_pseudo_labels, pseudo_label_course
from legnn.analysis.smoothness import graph_difference, label_differences, relative_graph_difference
from legnn.analysis.tables import write_csv, write_table
from legnn.errors import InputError, plural
from legnn.nn import LEGNN
from legnn.runs import Ensemble, NodeRepresentations, Run, RunFolder, is_ensemble_folder, is_seeds_folder, seed_folders

TEST, HIDDEN, SHOWN = "test", "all, hidden", "all, shown"
"""The nodes of a row: test nodes, which show no label; all nodes of known class, none showing its own label; the same
nodes as in the paper, where every training node shows its label."""

PER_CLASS = 500

TSNE_ITERATIONS = 500
"""Half of scikit-learn's: by then the classes are apart, and t-SNE takes most of the time of an analysis."""


class Report(NamedTuple):
    """What `analyze` found."""

    summary: pd.DataFrame
    """Three rows a run: `run`, `nodes`, `GD`, `relative GD`, `NMI`, `ARI`, `ECE`, `parameters`, `inference s`."""
    notes: list[str]
    """What a reader of the table should know."""


def analyze(paths: Sequence[Path], out: Path, *, device: str = "auto") -> Report:
    """Measures finished runs; writes a summary of all to `out`, and tables and pictures of each to a folder in it.

    A path is the folder of a run, or of runs with several seeds, all of which are taken.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder as `out`")
    folders = find_runs(paths)
    # all are opened before the first is analyzed: a damaged one is found at once
    runs = [Run.open(folder) for folder in folders]
    rows, notes = [], []
    for run, name in zip(runs, _short_names(folders), strict=True):
        one = _RunReport(run, out / name, name, device)
        rows += one.rows()
        one.write()
        notes += [f"{name}: {note}" for note in one.notes]
    summary = pd.DataFrame(rows)
    write_table(summary, out / "summary")
    return Report(summary, notes)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Returns the run folders of `paths`, each once, with those of its seeds in the place of a folder of several."""
    found: list[Path] = []
    for path in paths:
        if is_ensemble_folder(path):
            member = path / Ensemble.open(path).members[0].folder
            raise InputError(f"{path} is an ensemble, which has no representations; analyze its runs, such as {member}")
        found += seed_folders(path) if is_seeds_folder(path) else [path]
    return list({folder.resolve(): folder for folder in found}.values())


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The names of the folders, with those of their parents where that tells them apart."""
    parts = [folder.resolve().parts[1:] for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["-".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


class _RunReport:
    """One run: its rows of the summary, its notes, and its files."""

    def __init__(self, run: Run, out: Path, name: str, device: str) -> None:
        # its graph in memory: it is read once
        graph = run.own_graph()
        self.run, self.out, self.name, self.device = replace(run, graph=graph), out, name, device
        self.classes = run.card.classes
        self.y = (graph.y if graph.target_index is None else graph.y[graph.target_index]).numpy()
        self.notes: list[str] = []
        self.z: NodeRepresentations | None = None
        if isinstance(run.model, LEGNN):
            self.z = self.run.representations(device=device)
        else:
            self.notes.append(f"{type(run.model).__name__} has no representations, so GD, NMI and ARI are left out.")
        split = run.predictions["split"].to_numpy()
        known = self.y >= 0
        self.masks = {TEST: known & (split == "test"), HIDDEN: known, SHOWN: known}
        self.unlabeled = known & (split != "train")
        predicted = run.predictions["prediction"].map({name: c for c, name in enumerate(self.classes)})
        self.confidence, self.correct = run.predictions["confidence"].to_numpy(), predicted.to_numpy() == self.y

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the summary."""
        seconds = inference_seconds(self.run, self.device)
        cost = {"parameters": self.run.model.num_parameters(), "inference s": seconds}
        return [{"run": self.name, "nodes": nodes, **self._quantities(nodes), **cost} for nodes in self.masks]

    def _quantities(self, nodes: str) -> dict[str, float]:
        mask = self.masks[nodes]
        found = dict.fromkeys(("GD", "relative GD", "NMI", "ARI"), float("nan"))
        if self.z is not None:
            z, y, count = self._states(nodes)[mask], self.y[mask], len(self.classes)
            found["GD"], found["relative GD"] = graph_difference(z, y, count), relative_graph_difference(z, y, count)
            chosen = choose_nodes(y, per_class=PER_CLASS)
            found["NMI"], found["ARI"] = cluster(z[chosen], y[chosen])
            self._note_small_classes(nodes, y, y[chosen])
        # predictions hide a node's own label, so there is no confidence with all labels shown
        is_honest = nodes != SHOWN
        ece = expected_calibration_error(self.confidence[mask], self.correct[mask]) if is_honest else float("nan")
        return {**found, "ECE": ece}

    def _states(self, nodes: str) -> np.ndarray:
        assert self.z is not None
        return self.z.nodes if nodes == SHOWN else self.z.nodes_without_own_label

    def _note_small_classes(self, nodes: str, y: np.ndarray, chosen: np.ndarray) -> None:
        if nodes == SHOWN:
            return  # the same nodes as with their own labels hidden
        which = "test" if nodes == TEST else "labeled"
        missing = len(self.classes) - len(np.unique(y))
        if missing:
            self.notes.append(f"GD leaves out {missing} of {len(self.classes)} classes, which have no {which} nodes.")
        sizes = np.unique(chosen, return_counts=True)[1]
        if (sizes < PER_CLASS).any():
            self.notes.append(
                f"{which} nodes are clustered into {len(sizes)} classes of {sizes.min()} to {sizes.max()} nodes."
            )

    def write(self) -> None:
        """Writes the tables and pictures of the run."""
        write_table(accuracy_by_band(self.confidence[self.unlabeled], self.correct[self.unlabeled]), self.out / "bands")
        test = self.masks[TEST]
        bins = reliability(self.confidence[test], self.correct[test])
        write_table(bins, self.out / "calibration")
        draw_reliability(bins, self.out / "calibration.png", f"{self.name}: {plural(int(test.sum()), 'test node')}")
        self._write_course()
        if self.z is not None:
            self._write_differences()
            self._write_projection(self.z)
            self._write_label_similarity(self.z.labels)

    def _write_course(self) -> None:
        assert self.run.folder is not None
        folder = RunFolder(self.run.folder)
        logs = folder.logs()
        if not logs:
            self.notes.append("there is no metrics.jsonl, so no curves are drawn.")
            return
        draw_curves(folder, self.out / "curves.png")
        course = pseudo_label_course(logs)
        if len(course):
            write_csv(course, self.out / "pseudo_labels.csv")
            first = first_epoch_with_pseudo_labels(course)
            self.notes.append(
                "no node ever got a pseudo label." if first is None else f"first pseudo labels in epoch {first}."
            )

    def _write_differences(self) -> None:
        columns: dict[str, Any] = {"class": self.classes}
        for nodes, mask in self.masks.items():
            y = self.y[mask]
            columns[f"nodes ({nodes})"] = np.bincount(y, minlength=len(self.classes))
            columns[f"LD ({nodes})"] = label_differences(self._states(nodes)[mask], y, len(self.classes))
        write_table(pd.DataFrame(columns), self.out / "label_differences")

    def _write_projection(self, z: NodeRepresentations) -> None:
        chosen = choose_nodes(self.y, per_class=PER_CLASS)
        if len(chosen) < 4:
            self.notes.append("there are too few labeled nodes for t-SNE.")
            return
        title = f"{self.name}: t-SNE of {plural(len(chosen), 'node')}, training labels shown"
        points = tsne(z.nodes[chosen], iterations=TSNE_ITERATIONS)
        draw_projection(points, self.y[chosen], self.classes, self.out / "tsne.png", title)

    def _write_label_similarity(self, labels: np.ndarray | None) -> None:
        if labels is None:
            self.notes.append("labels are not nodes of the graph, so they have no similarity.")
            return
        similarity = cosine_similarity(labels)
        matrix = pd.DataFrame(similarity, columns=[str(name) for name in self.classes])
        matrix.insert(0, "class", self.classes, allow_duplicates=True)
        write_csv(matrix, self.out / "label_similarity.csv")
        write_table(most_similar_pairs(similarity, self.classes), self.out / "similar_labels")
        draw_label_similarity(similarity, self.classes, self.out / "label_similarity.png")
