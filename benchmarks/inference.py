"""Layer-wise inference on a graph of ogbn-papers100M's shape, with the states between layers in each place.

    python -m benchmarks.inference --scale 0.01 --memory 6.4

writes a prepared folder of so much of ogbn-papers100M's 111,059,956 nodes (30 edges each on average, with power-law
degrees and popular neighbors, 128 features, 172 classes) into a temporary folder (or under `--folder`), chunk by chunk.
For each of `--places` a process of its own maps the folder and predicts class and confidence of all nodes with a random
model. Its time, the peak of its anonymous memory (which cannot be dropped, as pages of mapped files can), what it had
before (libraries and compiled code), what was planned to come on top, and the bytes of the states on disk are printed;
then whether all predictions are the same. With `--memory` it fails if the last place takes more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, get_args

import numba
import numpy as np
import torch
from torch import Tensor

from legnn.data.splits import NO_SPLIT, TRAIN
from legnn.io.arrays import map_array
from legnn.io.prepared import read_prepared
from legnn.io.prepared_card import VERSION, PreparedCard, write_card
from legnn.nn import LEGNN, ModelSettings
from legnn.runs.device import CHUNK_FROM_HOST, SAMPLERS, hardware
from legnn.runs.memory import SINGLE, Size
from legnn.runs.precision import matrix_products
from legnn.training import DevicePlan, LayerWise, Task, assign_folds
from legnn.training.inference import to_class_and_confidence
from legnn.training.layer_wise import MATRICES_OF_A_CHUNK, NODES_AT_A_TIME
from legnn.training.states import Location, state_folder

NODES, TRAINED, CLASSES, FEATURES, EDGES = 111_059_956, 1_207_179, 172, 128, 30
"""Of ogbn-papers100M; edges a node, with reverse edges and self-loops."""
ROWS = 1 << 18
GB = 10**9

DIVIDING = 48
"""Bytes that dividing a node into chunks takes: positions, edges and their sums, in 64 bits."""


@numba.njit(parallel=True, cache=True)
def _draw_rows(rowptr: np.ndarray, col: np.ndarray, first: int, nodes: int) -> None:
    """Ascending neighbors of the nodes from `first` on, popular ones more often, by hashes of row and place."""
    for row in numba.prange(rowptr.size - 1):
        begin, end = rowptr[row] - rowptr[0], rowptr[row + 1] - rowptr[0]
        for slot in range(begin, end):
            word = np.uint64(first + row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(slot - begin + 1)
            for _ in range(2):
                word = (word ^ (word >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
            part = np.float64(word >> np.uint64(11)) / 2.0**53
            # ids do not tell who is popular
            col[slot] = (np.int64(nodes * part * part) * 2_654_435_761) % nodes
        col[begin:end].sort()


def write_graph(folder: Path, nodes: int, edges_of_a_node: float) -> None:
    """Writes the prepared folder, some rows at a time."""
    random = np.random.default_rng(0)
    degree = np.minimum(random.pareto(1.5, nodes) + 1, 10_000)
    rowptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.maximum(degree * (edges_of_a_node / degree.mean()), 1), out=degree)
    rowptr[1:] = degree
    split = np.full(nodes, NO_SPLIT, np.int8)
    labeled = random.permutation(nodes)[: max(round(nodes * TRAINED / NODES), CLASSES)]
    split[labeled] = TRAIN
    y = np.full(nodes, -1, np.int64)
    y[labeled] = np.arange(labeled.size) % CLASSES
    arrays = {"rowptr": rowptr, "y": y, "split": split, "node_id": np.arange(nodes)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    edges = int(rowptr[-1])
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (nodes, FEATURES))
    col = np.lib.format.open_memmap(folder / "col.npy", "w+", np.int32, (edges,))
    block = random.standard_normal((min(ROWS, nodes), FEATURES), np.float32)
    for begin in range(0, nodes, ROWS):
        end = min(begin + ROWS, nodes)
        np.multiply(block[: end - begin], 1 + (begin // ROWS) % 7, out=x[begin:end])
        _draw_rows(rowptr[begin : end + 1], col[rowptr[begin] : rowptr[end]], begin, nodes)
    write_card(
        folder,
        PreparedCard(
            version=VERSION, nodes=nodes, edges=edges, features=FEATURES, name="papers100M's shape",
            class_names=list(range(CLASSES)), feature_names=None, notes=[], raw_edges=edges, computed_features=[],
            feature_digest="", type_names=None, target_type=None, type_columns=None, homophily=None,
            fingerprint="synthetic", settings=None,
            files={f"{name}.npy": "" for name in (*arrays, "x", "col")},
        ),
    )  # fmt: skip


def anonymous_bytes() -> int:
    """Memory of this process that belongs to no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell the anonymous memory of a process")


def nameless_bytes(folder: Path) -> int:
    """What this process maps of files in `folder` without a name; the disk itself is used by others, too."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, name = line.split(maxsplit=5)
        if name.startswith(f"{folder}/") and name.endswith("(deleted)"):
            begin, end = (int(number, 16) for number in span.split("-"))
            total += end - begin
    return total


class Peaks:
    """Context that looks again and again at the anonymous memory of this process, and at its states on disk."""

    def __init__(self) -> None:
        self._folder, self._over = state_folder(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.memory = self.disk = 0

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.memory = max(self.memory, anonymous_bytes())
            self.disk = max(self.disk, nameless_bytes(self._folder))
            if self._over.wait(0.005):
                return


def plan_inference(
    size: Size, labeled: int, *, location: str, device: str = "cpu", itemsize: int = SINGLE, copies: int = 2
) -> dict[str, int]:
    """Anonymous memory of the host that predicting class and confidence of all nodes layer by layer takes at most.

    For a graph that is mapped from a prepared folder, whose pages the system may drop: they are not counted. Neither is
    what the libraries and the driver of a GPU take.

    Args:
        labeled: how many nodes are labeled.
        location: of the states (`states.Location`): only those in the host's memory are counted.
        device: the type of the device that computes.
        itemsize: bytes of an entry of the states.
        copies: how many states there are at once.
    """
    nodes = size.nodes
    samplers, chunk = (1, DevicePlan().chunk_bytes) if device == "cpu" else (SAMPLERS, CHUNK_FROM_HOST)
    return {
        "splits": nodes,
        "nodes of the splits, and candidates": 8 * (nodes + labeled),
        "folds": 8 * nodes,
        "degrees": 4 * nodes,
        "shown labels, and their places": 3 * 4 * nodes,
        "scratch of the samplers": samplers * 4 * nodes,
        "nodes that each layer needs": (size.layers + 1) * nodes,
        "nodes to predict": 2 * 8 * nodes,
        "class and confidence": 16 * nodes,
        "dividing nodes into chunks": DIVIDING * min(nodes, NODES_AT_A_TIME),
        "chunks": (MATRICES_OF_A_CHUNK + samplers - 1) * chunk,
        "states": copies * nodes * size.hidden * itemsize if location == "host" else 0,
    }


def predict(folder: Path, location: Location, options: argparse.Namespace) -> tuple[Tensor, dict[str, Any]]:
    """Class and confidence of all nodes of a prepared folder, with the states in one place, and what that took."""
    device = torch.device(options.device)
    precision = hardware(device).precision(options.precision)
    with matrix_products(precision.products), Peaks() as peaks:
        graph = read_prepared(folder)
        torch.manual_seed(0)
        settings = ModelSettings(backbone=options.backbone, hidden=options.hidden, layers=options.layers, norm="layer")
        model = LEGNN(graph.num_features, graph.num_classes, settings).to(device).eval()
        task = Task.from_graph(graph, torch.device("cpu"))
        # who predicts a run keeps them, too
        folds = assign_folds(graph.node_id, 10)
        start = time.perf_counter()
        layer_wise = LayerWise(
            model,
            task,
            device,
            precision.dtype,
            location=location,
            plan=hardware(device).plan(task.y.device, task.x.device),
        )
        # however small the graph
        layer_wise.is_at_once = False
        predictions = layer_wise.logits(task.train, torch.arange(folds.numel()), to_class_and_confidence).cpu()
        seconds = time.perf_counter() - start
    of_data = graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes
    size = Size(*of_data, options.hidden, options.layers)
    itemsize = precision.dtype.itemsize
    plan = plan_inference(size, task.train.numel(), location=location, device=device.type, itemsize=itemsize)
    figures = {"seconds": seconds, "memory": peaks.memory, "disk": peaks.disk, "planned": sum(plan.values())}
    figures["gpu"] = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return predictions, {**figures, "nodes": graph.num_nodes, "edges": graph.num_edges * options.layers}


def predict_and_print(folder: Path, location: Location, options: argparse.Namespace) -> None:
    """Predicts, after a small graph for which all that is called is compiled, keeps the outcome and prints figures."""
    small = folder.parent / f"small-{location}"
    small.mkdir()
    write_graph(small, 2000, options.edges)
    predict(small, location, options)
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    before = anonymous_bytes()
    predictions, figures = predict(folder, location, options)
    np.save(folder.parent / f"{location}.npy", predictions.numpy())
    print(json.dumps({**figures, "before": before}))


def predict_in_a_process(folder: Path, location: str, arguments: list[str]) -> dict[str, Any]:
    """`predict` in a new process, which has used no memory before."""
    command = [sys.executable, "-m", "benchmarks.inference", *arguments, "--predict", str(folder), "--places", location]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(first: Path, other: Path) -> str:
    """A sentence about the predictions in two files, class and confidence `[M, 2]`."""
    a, b = map_array(first), map_array(other)
    if np.array_equal(a, b):
        return f"{other.stem}: the same classes and confidences as {first.stem}, to the bit"
    same, far = np.mean(a[:, 0] == b[:, 0]), np.abs(a[:, 1] - b[:, 1]).max()
    return f"{other.stem}: {same:.4%} of the classes of {first.stem}, confidences within {far:.1g}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.01, help="nodes, as a part of ogbn-papers100M's")
    parser.add_argument("--places", nargs="+", choices=get_args(Location), default=["host", "disk"])
    parser.add_argument("--memory", type=float, help="GB of anonymous memory that the last place may take")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16"), default="fp32")
    parser.add_argument("--backbone", choices=("gcn", "sage", "gat"), default="gcn")
    parser.add_argument("--edges", type=float, default=EDGES, help="edges a node")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--predict", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.predict is not None:
        predict_and_print(options.predict, options.places[0], options)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary) / "graph"
        folder.mkdir()
        start, nodes = time.perf_counter(), round(NODES * options.scale)
        write_graph(folder, nodes, options.edges)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(
            f"{nodes:,} nodes, a folder of {size / GB:.2f} GB written in {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        passed = ["--device", options.device, "--precision", options.precision, "--backbone", options.backbone]
        passed += ["--hidden", str(options.hidden), "--layers", str(options.layers), "--edges", str(options.edges)]
        print(
            "| states | s | M nodes/s | M edges/s | anonymous, GB | before, GB | planned, GB | on disk, GB | GPU, GB |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        measured: dict[str, Any] = {}
        for location in options.places:
            measured = predict_in_a_process(folder, location, passed)
            rates = (measured[name] / measured["seconds"] / 1e6 for name in ("nodes", "edges"))
            sizes = (measured[name] / GB for name in ("memory", "before", "planned", "disk", "gpu"))
            figures = [f"{measured['seconds']:.1f}", *(f"{value:.2f}" for value in (*rates, *sizes))]
            print(f"| {' | '.join([location, *figures])} |", flush=True)
        first, *others = (Path(temporary) / f"{location}.npy" for location in options.places)
        for other in others:
            print(compare(first, other))
    if options.memory is not None and measured["memory"] > options.memory * GB:
        sys.exit(f"{options.places[-1]}: more than {options.memory:g} GB of anonymous memory")


if __name__ == "__main__":
    main()
