"""When a GPU works and when it waits: the kernels of an epoch of mini-batches, some of them on a time axis, by stream.

    python -m benchmarks.timeline --size mag --scale 0.25 --backbone sage --picture timeline.png

Mini-batches as the library takes them, and the same steps launched one by one. `busy` is the time in which at least one
kernel runs, over that of the same steps without the profiler, which slows down every launch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.epochs import build, scaled, seconds
from benchmarks.speed import Case
from benchmarks.synthetic import SIZES
from legnn.graph.selection import predicted_count
from legnn.runs.device import hardware
from legnn.runs.precision import matrix_products


@dataclass(frozen=True)
class Kernel:
    """One kernel or copy on the GPU, in milliseconds from the first."""

    stream: int
    start: float
    length: float
    name: str


def record(run: Callable[[], object]) -> list[Kernel]:
    """The kernels that `run` launches, in order."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    begin = min(one["ts"] for one in found)
    kernels = [
        Kernel(one["args"].get("stream", 0), (one["ts"] - begin) / 1e3, one["dur"] / 1e3, one["name"]) for one in found
    ]
    return sorted(kernels, key=lambda kernel: kernel.start)


def busy_ms(kernels: list[Kernel]) -> float:
    """Milliseconds in which any kernel runs."""
    end = covered = 0.0
    for kernel in kernels:
        stop = kernel.start + kernel.length
        covered += max(stop - max(end, kernel.start), 0.0)
        end = max(end, stop)
    return covered


def draw(panels: dict[str, list[Kernel]], milliseconds: float, place: Path) -> None:
    """The last `milliseconds` but a few steps of each, a row for each stream that does more than a hundredth of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(panels), 1, figsize=(9, 2 * len(panels)), constrained_layout=True, sharex=True, squeeze=False
    )
    for axis, (title, kernels) in zip(axes[:, 0], panels.items(), strict=True):
        begin = 0.6 * kernels[-1].start
        streams: dict[int, list[Kernel]] = {}
        for one in kernels:
            if begin <= one.start < begin + milliseconds:
                streams.setdefault(one.stream, []).append(one)
        busy = {stream: sum(one.length for one in mine) for stream, mine in streams.items()}
        rows = [stream for stream in sorted(busy, key=lambda one: -busy[one]) if busy[stream] > 0.01 * milliseconds]
        names = ["sampling" if any(one.name == "_draw" for one in streams[stream]) else "training" for stream in rows]
        for row, (stream, name) in enumerate(zip(rows, names, strict=True)):
            bars = [(one.start - begin, max(one.length, 0.01)) for one in streams[stream]]
            color = "#c8792b" if name == "sampling" else "#2f6fae"
            axis.broken_barh(bars, (-row - 0.4, 0.8), facecolors=color, linewidth=0)
        axis.set_yticks([-row for row in range(len(rows))], names)
        axis.set(title=title, xlim=(0, milliseconds), ylim=(-len(rows) + 0.4, 0.6))
    axes[-1, 0].set_xlabel("ms")
    figure.savefig(place, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Profile and print; draw if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=tuple(SIZES), default="mag")
    parser.add_argument("--scale", type=float, default=1.0, help="part of that size")
    parser.add_argument("--backbone", default="sage", choices=("gcn", "sage", "gat"))
    parser.add_argument("--precision", default="tf32", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--lines", type=int, default=12, help="kernels to print")
    parser.add_argument("--milliseconds", type=float, default=40.0, help="what the picture shows")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(arguments)
    options.device, options.features_on = "cuda", "cuda"
    work = scaled(options.size, options.scale)
    panels: dict[str, list[Kernel]] = {}
    for title, capture in (("launched one by one", False), ("captured", True)):
        parts = build(work, Case("legnn", options.backbone, "enhanced"), options, capture=capture)
        steps = -(-predicted_count(parts.task.train.numel(), parts.objective.alpha) // parts.batch)
        with matrix_products(hardware(parts.device).precision(options.precision).products):
            # kernels are compiled and steps captured in the first epoch
            parts.train_epoch(1)
            alone = 1e3 * seconds(lambda parts=parts: parts.train_epoch(2), parts.device) / steps
            kernels = record(lambda parts=parts: parts.train_epoch(3))
        part = busy_ms(kernels) / steps / alone
        panels[f"{title}: a kernel runs {part:.0%} of the time"] = kernels
        traced = (kernels[-1].start + kernels[-1].length) / steps
        print(
            f"{title}: {alone:.2f} ms a step ({traced:.2f} while profiled), "
            f"{len(kernels) // steps} kernels, busy {part:.0%}"
        )
        total: dict[str, float] = {}
        for kernel in kernels:
            total[kernel.name] = total.get(kernel.name, 0.0) + kernel.length / steps
        for name, spent in sorted(total.items(), key=lambda pair: -pair[1])[: options.lines]:
            print(f"{spent:8.3f} ms  {name[:100]}")
    if options.picture:
        draw(panels, options.milliseconds, options.picture)


if __name__ == "__main__":
    main()
