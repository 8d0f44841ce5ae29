"""Time and peak memory of reading an edge table.

    python -m benchmarks.tables --edges 100e6 --nodes 10e6

writes a Parquet file of random edges between nodes with the ids 0 to M - 1 into a temporary folder (or under
`--folder`), reads it in a process of its own, and prints seconds and the peak of that process above what it held
before it began to read. `--format csv`, `--weighted` and `--scattered` (ids that do not count from 0) are harder.
`--prepare` goes on to build the adjacency as `load` does: undirected, without duplicate edges, with self-loops.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

ROWS = 1 << 20
SPREAD = 7
"""Scattered ids are `SPREAD * position + 3`."""


def write_edges(path: Path, edges: int, nodes: int, *, weighted: bool = False, scattered: bool = False) -> None:
    """Write random edges a million at a time."""
    random = np.random.default_rng(0)
    kinds = {"source": pa.int64(), "target": pa.int64()} | ({"weight": pa.float32()} if weighted else {})
    schema = pa.schema(list(kinds.items()))
    writer = (pq.ParquetWriter if path.suffix == ".parquet" else pacsv.CSVWriter)(path, schema)
    with writer:
        for begin in range(0, edges, ROWS):
            rows = min(ROWS, edges - begin)
            columns = [random.integers(0, nodes, rows) for _ in range(2)]
            if scattered:
                columns = [SPREAD * column + 3 for column in columns]
            if weighted:
                columns.append(random.random(rows, dtype=np.float32) + np.float32(0.5))
            writer.write_table(pa.table(columns, schema=schema))


def measure(path: Path, nodes: int, *, scattered: bool = False, preparing: bool = False) -> dict[str, float]:
    """Reads the table in this process; returns seconds, bytes of the arrays, and the peak above the bytes before."""
    from legnn.config import DataSettings
    from legnn.io.edge_tables import open_edges, read_edges
    from legnn.ops.csr.build import edges_to_csr

    ids = np.arange(nodes)
    ids = pa.array(SPREAD * ids + 3 if scattered else ids)
    before = _peak()
    start = time.perf_counter()
    edges = read_edges(open_edges(path), ids, ids, DataSettings())
    seconds = time.perf_counter() - start
    arrays = edges.edge_index.nbytes + (0 if edges.weight is None else edges.weight.nbytes)
    figures = {"seconds": seconds, "arrays": arrays, "peak": _peak() - before}
    if preparing:
        start = time.perf_counter()
        csr = edges_to_csr(
            *edges.edge_index, edges.weight, nodes, undirected=True, remove_duplicates=True, self_loops=True
        )
        figures |= {"prepare_seconds": time.perf_counter() - start, "prepare_peak": _peak() - before}
        figures["prepared_edges"] = len(csr.col)
    return figures


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_in_a_process(
    path: Path, nodes: int, *, scattered: bool = False, preparing: bool = False
) -> dict[str, float]:
    """`measure` in a new process: the peak is over the whole life of a process."""
    command = [sys.executable, "-m", "benchmarks.tables", "--read", str(path), "--nodes", str(nodes)]
    command += [flag for flag, is_on in (("--scattered", scattered), ("--prepare", preparing)) if is_on]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, default=100e6)
    parser.add_argument("--nodes", type=float, default=10e6)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--weighted", action="store_true")
    parser.add_argument("--scattered", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    edges, nodes = int(options.edges), int(options.nodes)
    if options.read is not None:
        print(json.dumps(measure(options.read, nodes, scattered=options.scattered, preparing=options.prepare)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / f"edges.{options.format}"
        start = time.perf_counter()
        write_edges(path, edges, nodes, weighted=options.weighted, scattered=options.scattered)
        print(
            f"{edges:,} edges, {nodes:,} nodes, {path.stat().st_size / 2**20:,.0f} MiB of {options.format}, "
            f"written in {time.perf_counter() - start:.1f} s"
        )
        figures = measure_in_a_process(path, nodes, scattered=options.scattered, preparing=options.prepare)
    print(f"read in {figures['seconds']:.1f} s, {edges / figures['seconds'] / 1e6:.1f} M edges a second")
    print(
        f"arrays {figures['arrays'] / 2**20:,.0f} MiB, peak {figures['peak'] / 2**20:,.0f} MiB, "
        f"{figures['peak'] / figures['arrays']:.2f} times the arrays"
    )
    if options.prepare:
        print(
            f"prepared in {figures['prepare_seconds']:.1f} s: {figures['prepared_edges']:,.0f} edges, "
            f"peak {figures['prepare_peak'] / 2**20:,.0f} MiB in all"
        )


if __name__ == "__main__":
    main()
