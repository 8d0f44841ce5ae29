"""Kernels are compiled once and cached where nobody else can write, and those that other kernels call compute what they
say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

import legnn
from legnn.ops.runtime import jit

HELPER = """
from legnn.ops.runtime.jit import kernel

@kernel
def scaled(x):
    return {factor} * x
"""
USER = """
from legnn.ops.helper import scaled
from legnn.ops.runtime.jit import kernel

@kernel
def scale(x):
    return scaled(x)

print(scale(3), sum(scale.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of the library, with a kernel that calls one of another file."""
    root = tmp_path / "src"
    shutil.copytree(Path(legnn.__file__).parent, root / "legnn", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "legnn/ops/helper.py").write_text(HELPER.format(factor=2))
    (root / "legnn/ops/user.py").write_text(USER)
    return root


def run(root: Path, **environment: str) -> list[str]:
    """The result of the kernel, and how often it was found compiled."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    paths = {"PYTHONPATH": str(root), "XDG_CACHE_HOME": str(root.parent / "cache"), "TMPDIR": str(root.parent)}
    program = [sys.executable, "-m", "legnn.ops.user"]
    done = subprocess.run(program, env={**inherited, **paths, **environment}, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().split()


def test_a_cached_kernel_is_compiled_anew_when_a_helper_in_another_file_was_edited(package):
    assert run(package) == ["6", "0"]
    assert run(package) == ["6", "1"], "the second process finds what the first has compiled"
    (package / "legnn/ops/helper.py").write_text(HELPER.format(factor=5))
    assert run(package) == ["15", "0"]
    assert run(package) == ["15", "1"]


def test_only_its_owner_can_read_the_cache_of_kernels(package):
    run(package)
    (folder,) = (package.parent / "cache/legnn").glob("kernels-*")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_kernels_are_cached_elsewhere_or_not_at_all_where_the_usual_folder_cannot_be_made(package):
    blocked = package.parent / "file"
    blocked.write_text("")
    nowhere = {"XDG_CACHE_HOME": str(blocked)}
    assert run(package, **nowhere) == ["6", "0"]
    assert run(package, **nowhere) == ["6", "1"], "in the folder for temporary files"
    assert run(package, NUMBA_CACHE_DIR=str(blocked)) == ["6", "0"]
    assert run(package, NUMBA_CACHE_DIR=str(blocked)) == ["6", "0"]


def test_the_cache_folder_of_other_functions_stays_as_it_was():
    before = numba.config.CACHE_DIR
    with jit.caching():
        assert before != numba.config.CACHE_DIR
    assert before == numba.config.CACHE_DIR


def test_exponentials_are_right_to_three_times_the_precision_of_their_type():
    x = np.linspace(-87, 88, 100_001, dtype=np.float32)
    found = x.copy()
    jit.exponentiate(found, 0, found.size)
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=3 * 2.0**-23)


def test_exponentials_are_taken_of_a_part_and_leave_nan():
    x = np.array([3, 0, np.nan, -200, -np.inf, 2], np.float32)
    jit.exponentiate(x, 1, 5)
    np.testing.assert_allclose(x, [3, 1, np.nan, 0, 0, 2], atol=1e-37)


@jit.kernel
def convert(x, out):
    for k in range(x.size):
        out[k] = jit.narrow(jit.widen(x[k]), out)


def test_every_number_in_bf16_is_read_and_written_as_it_is():
    bits = np.arange(2**16, dtype=np.uint16)
    numbers = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16)
    wide, again = np.empty(bits.size, np.float32), np.empty_like(bits)
    convert(bits, wide)
    np.testing.assert_array_equal(wide, numbers.float().numpy())
    convert(wide, again)
    is_number = ~np.isnan(wide)
    np.testing.assert_array_equal(again[is_number], bits[is_number])
    assert torch.from_numpy(again[~is_number].view(np.int16)).view(torch.bfloat16).isnan().all()


def test_numbers_between_are_rounded_as_pytorch_rounds_them():
    generator = np.random.default_rng(0)
    words = generator.integers(2**32, size=10**6, dtype=np.uint32)
    # halfway between two, where the last bit decides
    words[::3] = words[::3] & np.uint32(0xFFFF0000) | np.uint32(0x8000)
    x = words.view(np.float32)
    x = x[~np.isnan(x)]
    found = np.empty(x.size, np.uint16)
    convert(x, found)
    expected = torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(found, expected)


def test_what_is_float32_stays_float32():
    x, out = np.array([1.1, -0.0, np.inf], np.float32), np.empty(3, np.float32)
    convert(x, out)
    np.testing.assert_array_equal(out, x)
