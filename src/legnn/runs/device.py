"""All that depends on the device of a run; no other module of `runs` and above asks for it."""

from __future__ import annotations

import os
import platform
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from legnn.errors import InputError
from legnn.ops.runtime.bf16 import cpu_multiplies_bf16
from legnn.runs.memory import AT_ONCE, USABLE, host_free_bytes, host_total_bytes
from legnn.runs.precision import Precision
from legnn.runs.processes import under_torchrun
from legnn.training import DevicePlan

HOST = torch.device("cpu")

ACTIVATIONS = {"bf16": torch.bfloat16, "fp64": torch.float64}
"""The dtype of features and activations; float32 for every other precision."""

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


@dataclass(frozen=True)
class Cpu:
    """Properties of a CPU that a run needs; `Gpu` has the same methods."""

    device: torch.device
    single_precision = "fp32"
    """The precision of products of float32 matrices where the user has not chosen one."""

    @property
    def name(self) -> str:
        """Name of the device for readers."""
        return f"{platform.machine()} CPU"

    def free_bytes(self) -> int:
        """Memory that is free at the moment."""
        return host_free_bytes()

    def total_bytes(self) -> int:
        """All the memory, free or not."""
        return host_total_bytes()

    def peak_bytes(self) -> int | None:
        """The most memory of a GPU that was allocated since `reset_peak_bytes`; None on a CPU."""
        return None

    def reset_peak_bytes(self) -> None:
        """Lets `peak_bytes` count anew."""

    def synchronize(self) -> None:
        """Waits until the device has computed everything."""

    def least_bf16_product(self) -> float:
        """Multiplications of one product from which bf16 is faster; infinite if it never is."""
        return BF16_ON_CPU if cpu_multiplies_bf16() else float("inf")

    def precision(self, name: str) -> Precision:
        """Returns the meaning of the setting `precision`; raises `InputError` for TF32 on a CPU."""
        if name == "tf32":
            raise InputError("`train.precision=tf32` needs a GPU, and this run is on the CPU; give fp32 or auto")
        dtype = ACTIVATIONS.get(name, torch.float32)
        return Precision(torch.float32 if name == "bf16" and not cpu_multiplies_bf16() else dtype, "highest")

    def generators(self) -> dict[str, Generator]:
        """PyTorch's own generators on the host and on the device, by kind of device."""
        return {"cpu": torch.default_generator}

    def plan(self, graph: torch.device, features: torch.device, inference_bytes: int = 0) -> DevicePlan:
        """How a model is computed, from a graph and features that are stored on these devices.

        Args:
            inference_bytes: what inference at once takes, compared with all the memory: the answer is always the same.
        """
        return DevicePlan(at_once=inference_bytes <= AT_ONCE * self.total_bytes(), host_bytes=host_free_bytes)

    def process_group(self) -> str:
        """PyTorch's backend for the exchange between processes, each of which uses its own device from now on."""
        return "gloo"


@dataclass(frozen=True)
class Gpu:
    """Properties of a GPU that a run needs, as in `Cpu`."""

    device: torch.device
    single_precision = "tf32"

    @property
    def name(self) -> str:
        """The product name."""
        return torch.cuda.get_device_name(self.device)

    def free_bytes(self) -> int:
        """Memory that is free at the moment, whoever uses the rest."""
        return torch.cuda.mem_get_info(self.device)[0]

    def total_bytes(self) -> int:
        """All the memory."""
        return torch.cuda.mem_get_info(self.device)[1]

    def peak_bytes(self) -> int | None:
        """The most memory that was allocated since `reset_peak_bytes`."""
        return torch.cuda.max_memory_allocated(self.device)

    def reset_peak_bytes(self) -> None:
        """Lets `peak_bytes` count anew."""
        torch.cuda.reset_peak_memory_stats(self.device)

    def synchronize(self) -> None:
        """Waits until all kernels have ended."""
        torch.cuda.synchronize(self.device)

    def least_bf16_product(self) -> float:
        """Zero where the GPU multiplies in bf16."""
        return 0.0 if torch.cuda.get_device_capability(self.device) >= BF16_CAPABILITY else float("inf")

    def precision(self, name: str) -> Precision:
        """Returns the meaning of the setting `precision`; `auto` is TF32."""
        products: Literal["highest", "high"] = "highest" if name in ("fp32", "fp64") else "high"
        return Precision(ACTIVATIONS.get(name, torch.float32), products)

    def generators(self) -> dict[str, Generator]:
        """As in `Cpu`; the generator of the GPU exists once CUDA is initialized."""
        number = torch.cuda.current_device() if self.device.index is None else self.device.index
        return {"cpu": torch.default_generator, "cuda": torch.cuda.default_generators[number]}

    def plan(self, graph: torch.device, features: torch.device, inference_bytes: int = 0) -> DevicePlan:
        """With captured steps, streams and pinned memory."""
        is_on_host = graph == HOST
        return DevicePlan(
            # the reference operations may synchronize
            capture=os.environ.get("LEGNN_BACKEND") != "reference",
            streams=True,
            pin=True,
            samplers=SAMPLERS if is_on_host else 0,
            chunk_bytes=CHUNK_FROM_HOST if is_on_host else CHUNK_BYTES,
            at_once=features != HOST and inference_bytes <= AT_ONCE * self.total_bytes(),
            host_bytes=host_free_bytes,
            # what the allocator keeps for the next tensor is free for it
            free_bytes=lambda: (
                self.free_bytes() + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            ),
        )

    def process_group(self) -> str:
        """NCCL, with this GPU as the one of the process."""
        torch.cuda.set_device(self.device)
        # tensors in the host's memory are exchanged over gloo
        return "cpu:gloo,cuda:nccl"


def hardware(device: torch.device) -> Cpu | Gpu:
    """Returns what a run may ask of `device`."""
    return Gpu(device) if device.type == "cuda" else Cpu(device)


def select_device(name: str) -> torch.device:
    """The device a setting means; under `torchrun`, each process of a machine has a GPU of its own."""
    count = len(visible_gpus(name))
    if not count:
        if name == "cuda":
            raise InputError("`train.device=cuda` needs a GPU, and PyTorch sees no GPU here; give cpu or auto")
        return HOST
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


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Within it PyTorch draws from `seed` on the host and on `device`; the caller's random state is restored."""
    # `torch.manual_seed` also seeds kinds of devices that are missing, for which it notes the lines of all callers
    states = [(generator, generator.get_state()) for generator in hardware(device).generators().values()]
    try:
        for generator, _ in states:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


def register_pinned(values: Tensor) -> bool:
    """Pins the memory of `values`, which a GPU then reads by itself, until it is freed; returns whether that succeeded.

    `Tensor.pin_memory` would need the same memory again, rounded up to a power of two. Pages of a mapped file become
    memory of the process: where they do not fit, nothing is pinned.
    """
    size = values.nbytes
    if not values.is_contiguous() or size == 0 or size > USABLE * host_free_bytes():
        return False
    runtime, address = torch.cuda.cudart(), values.data_ptr()
    if int(runtime.cudaHostRegister(address, size, 0)) != 0:
        # the next launch of a kernel would report the error as its own
        with suppress(RuntimeError):
            torch.ones(1, device="cuda")
        return False
    weakref.finalize(values, runtime.cudaHostUnregister, address)
    return True
