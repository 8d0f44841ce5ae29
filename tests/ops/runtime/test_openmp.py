"""PyTorch's OpenMP threads are used where they can be reached, and the results are the same where they cannot."""

import torch

from legnn.graph import Adjacency
from legnn.ops.runtime import openmp, threads

look_up = openmp.gomp_parallel_address.__wrapped__
"""The look-up itself, which does not remember earlier calls."""


def test_without_openmp_in_pytorch_nothing_is_looked_up(monkeypatch):
    monkeypatch.setattr(torch.__config__, "parallel_info", lambda: "ATen parallel backend: native thread pool")
    assert look_up() == 0


def test_without_a_memory_map_nothing_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(openmp, "MEMORY_MAP", tmp_path / "maps")
    assert look_up() == 0


def test_a_process_that_has_loaded_no_openmp_has_none(monkeypatch, tmp_path):
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f01 r-xp 00000000 08:01 42 /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0\n")
    monkeypatch.setattr(openmp, "MEMORY_MAP", maps)
    assert look_up() == 0


def test_pytorchs_own_copy_is_preferred_and_one_without_the_function_is_passed_over(monkeypatch, tmp_path):
    ours = f"{torch.__path__[0]}/lib/libgomp-1.so"
    maps = tmp_path / "maps"
    maps.write_text(f"1-2 r-xp 0 08:01 42 /usr/lib/libgomp.so.1\n3-4 r-xp 0 08:01 43 {ours}\n")
    opened = []

    class Library:
        def __init__(self, path: str) -> None:
            opened.append(path)

    monkeypatch.setattr(openmp, "MEMORY_MAP", maps)
    monkeypatch.setattr(openmp.ctypes, "CDLL", Library)
    assert look_up() == 0
    assert opened == [ours, "/usr/lib/libgomp.so.1"]


def test_an_operation_gives_the_same_to_the_bit_without_openmp(monkeypatch):
    edge_index = torch.randint(0, 40, (2, threads.SMALL + 1), generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with_openmp = Adjacency.from_edge_index(edge_index, 40).transposition
        monkeypatch.setattr(threads, "gomp_parallel_address", lambda: 0)
        pool, kernels = threads._pool, []

        def noting_kernels(process, number):
            class Pool:
                def submit(self, function, kernel, *arguments):
                    kernels.append(kernel)
                    return pool(process, number).submit(function, kernel, *arguments)

            return Pool()

        monkeypatch.setattr(threads, "_pool", noting_kernels)
        without = Adjacency.from_edge_index(edge_index, 40).transposition
    finally:
        torch.set_num_threads(before)
    assert kernels, "a pool of its own did the work"
    assert torch.equal(with_openmp.place, without.place)
    assert torch.equal(with_openmp.adjacency.rowptr, without.adjacency.rowptr)
    assert torch.equal(with_openmp.adjacency.col, without.adjacency.col)
