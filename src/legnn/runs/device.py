"""What depends on the device of a run; no other module of `runs` and above asks for it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.ops.runtime.bf16 import cpu_multiplies_bf16
from legnn.training import memory
from legnn.training.ranks import under_torchrun

BF16_CAPABILITY = (8, 0)
"""The compute capability from which a GPU multiplies in bf16."""

BF16_ON_CPU = 10**8
"""Multiplications of one product of all nodes from which bf16 is faster on a CPU: where products take most of the
time."""


def is_gpu(device: torch.device) -> bool:
    """Whether `device` is a GPU."""
    return device.type == "cuda"


def select_device(name: str) -> torch.device:
    """The device a setting means; under `torchrun`, each process of a machine has a GPU of its own."""
    count = 0 if name == "cpu" else torch.cuda.device_count()
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
    return torch.cuda.mem_get_info(device)[0] if is_gpu(device) else memory.free_bytes(device)


def total_bytes(device: torch.device) -> int:
    """All the memory of `device`, free or not."""
    return torch.cuda.mem_get_info(device)[1] if is_gpu(device) else memory.total_bytes(device)


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
    with torch.random.fork_rng(devices=[device] if is_gpu(device) else []):
        # `torch.manual_seed` also seeds kinds of devices that are missing, for which it notes the lines of all callers
        torch.default_generator.manual_seed(seed)
        if is_gpu(device):
            torch.cuda.manual_seed_all(seed)
        yield


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Returns the states of PyTorch's generators on the host and on `device`, by kind of device."""
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if is_gpu(device) else states


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restores what `random_states` returned."""
    torch.set_rng_state(states["cpu"])
    if is_gpu(device) and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def process_group(device: torch.device) -> str:
    """Returns PyTorch's backend for the exchange between processes, each of which uses its own `device`."""
    if not is_gpu(device):
        return "gloo"
    torch.cuda.set_device(device)
    # tensors in the host's memory are exchanged over gloo
    return "cpu:gloo,cuda:nccl"
