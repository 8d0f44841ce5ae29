"""What depends on the device of a run; no other module of `runs` and above asks for it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator

from legnn.errors import InputError
from legnn.ops.runtime.bf16 import cpu_multiplies_bf16
from legnn.training import DevicePlan, under_torchrun
from legnn.training.device_plan import AT_ONCE_SHARE
from legnn.training.memory import host_free_bytes, host_total_bytes

BF16_CAPABILITY = (8, 0)
"""The compute capability from which a GPU multiplies in bf16."""

BF16_ON_CPU = 10**8
"""Multiplications of one product of all nodes from which bf16 is faster on a CPU: where products take most of the
time."""

CHUNK_BYTES = 2**32
"""Bytes of one matrix of a chunk of layer-wise inference on a GPU: enough to keep it busy."""

CHUNK_FROM_HOST = 2**29
"""The same where the graph is in the host's memory: several are prepared there at once, in pinned memory."""

SAMPLERS = 4
"""Threads that prepare chunks for a GPU from a graph in the host's memory."""


def is_gpu(device: torch.device) -> bool:
    """Whether `device` is a GPU."""
    return device.type == "cuda"


def select_device(name: str) -> torch.device:
    """The device a setting means; under `torchrun`, each process of a machine has a GPU of its own."""
    count = len(visible_gpus(name))
    if not count:
        if name == "cuda":
            raise InputError(
                "`device=cuda` needs a GPU, and PyTorch sees no GPU here; give `device=cpu` or `device=auto`"
            )
        return torch.device("cpu")
    if not under_torchrun():
        return torch.device("cuda")
    number = int(os.environ.get("LOCAL_RANK", "0"))
    if number >= count:
        raise InputError(f"process {number} of this machine has no GPU, for there are {count}; start at most {count}")
    return torch.device("cuda", number)


def visible_gpus(name: str) -> list[str]:
    """Returns the GPUs that a setting means, as `CUDA_VISIBLE_DEVICES` names them; none on the CPU."""
    count = 0 if name == "cpu" else torch.cuda.device_count()
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return names.split(",")[:count] if names else [str(number) for number in range(count)]


def device_name(device: torch.device) -> str:
    """Returns what a reader calls the device."""
    return torch.cuda.get_device_name(device) if is_gpu(device) else f"{platform.machine()} CPU"


def free_bytes(device: torch.device) -> int:
    """Memory of `device` that is free at the moment."""
    return torch.cuda.mem_get_info(device)[0] if is_gpu(device) else host_free_bytes()


def total_bytes(device: torch.device) -> int:
    """All the memory of `device`, free or not."""
    return torch.cuda.mem_get_info(device)[1] if is_gpu(device) else host_total_bytes()


def peak_bytes(device: torch.device) -> int | None:
    """The most memory of a GPU that was allocated since `reset_peak_bytes`; None on a CPU."""
    return torch.cuda.max_memory_allocated(device) if is_gpu(device) else None


def reset_peak_bytes(device: torch.device) -> None:
    """Lets `peak_bytes` count anew."""
    if is_gpu(device):
        torch.cuda.reset_peak_memory_stats(device)


def synchronize(device: torch.device) -> None:
    """Waits until `device` has computed everything."""
    if is_gpu(device):
        torch.cuda.synchronize(device)


def least_bf16_product(device: torch.device) -> float:
    """Multiplications of one product from which bf16 is faster on `device`; infinite if it never is."""
    if is_gpu(device):
        return 0.0 if torch.cuda.get_device_capability(device) >= BF16_CAPABILITY else float("inf")
    return BF16_ON_CPU if cpu_multiplies_bf16() else float("inf")


def single_precision(device: torch.device) -> str:
    """The precision of products of float32 matrices where the user has not chosen one."""
    return "tf32" if is_gpu(device) else "fp32"


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Within it PyTorch draws from `seed` on the host and on `device`; the caller's random state is restored."""
    gpus = [device] if is_gpu(device) else []
    with torch.random.fork_rng(devices=gpus):
        # `torch.manual_seed` also seeds kinds of devices that are missing, for which it notes the lines of all callers
        torch.default_generator.manual_seed(seed)
        if gpus:
            torch.cuda.manual_seed_all(seed)
        yield


def generators(device: torch.device) -> dict[str, Generator]:
    """Returns PyTorch's own generators on the host and on `device`, by kind of device."""
    host = {"cpu": torch.default_generator}
    if not is_gpu(device):
        return host
    number = torch.cuda.current_device() if device.index is None else device.index
    return {**host, "cuda": torch.cuda.default_generators[number]}


def device_plan(device: torch.device, graph: torch.device, features: torch.device) -> DevicePlan:
    """Returns how a model is computed on `device`, from a graph and features that are stored on these devices."""
    if not is_gpu(device):
        return DevicePlan()
    is_on_host = not is_gpu(graph)

    def free() -> int:
        # what the allocator keeps for the next tensor is free for it
        return free_bytes(device) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)

    return DevicePlan(
        # the reference operations may synchronize
        capture=os.environ.get("LEGNN_BACKEND") != "reference",
        streams=True,
        pin=True,
        samplers=SAMPLERS if is_on_host else 0,
        chunk_bytes=CHUNK_FROM_HOST if is_on_host else CHUNK_BYTES,
        at_once_bytes=int(AT_ONCE_SHARE * total_bytes(device)) if is_gpu(features) else 0,
        free_bytes=free,
    )


def process_group(device: torch.device) -> str:
    """Returns PyTorch's backend for the exchange between processes, each of which uses its own `device`."""
    if not is_gpu(device):
        return "gloo"
    torch.cuda.set_device(device)
    # tensors in the host's memory are exchanged over gloo
    return "cpu:gloo,cuda:nccl"
