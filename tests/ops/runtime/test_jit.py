"""Kernels compile everywhere: also where nothing can be written to disk, or what was written is damaged.

And those that other kernels call compute what they say.
"""

import subprocess
import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
import torch

from legnn.ops.runtime import jit, jit_cache

KERNEL = """
import sys
sys.path[:0] = {path!r}
from legnn.ops.runtime.jit import kernel

@kernel
def twice(x):
    return 2 * x

found = twice(3), sum(twice.stats.cache_hits.values())
print(*found)
"""


def test_a_kernel_that_cannot_be_kept_on_disk_is_compiled_all_the_same(monkeypatch):
    def nowhere(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(jit, "CheckedCache", nowhere)

    @jit.kernel
    def twice(x):
        return 2 * x

    assert twice(3) == 6


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(bytes(content))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.fixture
def module(tmp_path) -> Path:
    place = tmp_path / "module.py"
    place.write_text(KERNEL.format(path=sys.path))
    return place


def run(module: Path) -> tuple[int, int]:
    """Twice 3, and whether that was found compiled: a module that is run again has compiled nothing yet."""
    return run_path(str(module))["found"]


def test_code_that_was_damaged_on_disk_is_compiled_anew_and_never_run(module):
    other = subprocess.run([sys.executable, module], stdout=subprocess.PIPE, text=True, check=True)
    assert other.stdout == "6 0\n"
    assert run(module) == (6, 1), "the second process finds what the first has compiled"
    for ending, damage in (("nbc", flip), ("nbi", cut)):
        (file,) = (module.parent / "__pycache__").glob(f"*.{ending}")
        damage(file)
        assert run(module) == (6, 0)


def test_a_kernel_is_compiled_anew_when_a_file_has_changed_whose_functions_it_may_have_in_it(module, monkeypatch):
    names = {name for name, _, _ in jit_cache.shared_sources()}
    assert {"jit.py", "fork_join.py", "hashing.py", "numba_kernels.py", "cpu_layer_norm.py"} <= names
    assert run(module) == (6, 0)
    assert run(module) == (6, 1)
    monkeypatch.setattr(jit_cache, "shared_sources", lambda: (("jit.py", 0.0, 1),))
    assert run(module) == (6, 0)


def test_loading_a_kernel_imports_none_of_what_compiled_it(tmp_path):
    place = tmp_path / "module.py"
    place.write_text(
        f"import sys\nsys.path[:0] = {sys.path!r}\n"
        "import numpy as np\nfrom legnn.ops.runtime.jit import kernel\n\n"
        "@kernel\ndef zeros(n):\n    x = np.empty(n)\n    x[:] = 0\n    return x\n\n"
        "print(zeros(3).sum(), 'numba.np.arrayobj' in sys.modules)\n"
    )
    runs = [subprocess.run([sys.executable, place], stdout=subprocess.PIPE, text=True, check=True) for _ in range(2)]
    assert [run.stdout for run in runs] == ["0.0 True\n", "0.0 False\n"]


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
