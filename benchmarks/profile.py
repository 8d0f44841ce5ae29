"""Where the time of one training step goes, by PyTorch's profiler.

    python -m benchmarks.profile --size arxiv --device cuda --backbone gat --precision bf16

On a GPU a line is a kernel, on the CPU an operation without those it calls.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.speed import BACKBONES, PRECISIONS, Case, build
from benchmarks.synthetic import workload
from legnn.runs.device import hardware

STEPS = 3


def shares(run: Callable[[], object], device: torch.device) -> list[tuple[str, float, int]]:
    """Name, milliseconds and calls in one step, the longest first."""
    on_gpu = device.type == "cuda"
    for _ in range(5):
        run()
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=kinds) as seen:
        for _ in range(STEPS):
            run()
        if on_gpu:
            torch.cuda.synchronize()
    operations = []
    for event in seen.key_averages():
        # operations carry the time of the kernels they launch: on a GPU the kernels alone are counted
        if on_gpu and event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        time = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if time:
            operations.append((event.key, time / 1000 / STEPS, event.count // STEPS))
    return sorted(operations, key=lambda line: -line[1])


def main(arguments: list[str] | None = None) -> list[tuple[str, float, int]]:
    """Profile one case and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--backbone", choices=BACKBONES, default="gcn")
    parser.add_argument("--labels", choices=("vanilla", "enhanced"), default="enhanced")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--lines", type=int, default=12)
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    torch.set_float32_matmul_precision(hardware(device).precision(options.precision).products)
    case = Case("legnn", options.backbone, options.labels)
    lines = shares(build(case, workload(options.size), device, options.precision).train_step, device)
    total = sum(milliseconds for _, milliseconds, _ in lines)
    print(f"{total:9.2f} ms  100 %  {sum(count for *_, count in lines):5d} calls")
    for name, milliseconds, count in lines[: options.lines]:
        print(f"{milliseconds:9.2f} ms {100 * milliseconds / total:4.0f} %  {count:5d}  {name[:80]}")
    return lines


if __name__ == "__main__":
    main()
