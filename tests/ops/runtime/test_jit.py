"""Kernels compile everywhere, also where nothing can be written to disk."""

from types import SimpleNamespace

import numba

from legnn.ops.runtime import jit


def test_a_kernel_that_cannot_be_kept_on_disk_is_compiled_all_the_same(monkeypatch):
    def nowhere(**options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=nowhere))

    @jit.kernel
    def twice(x):
        return 2 * x

    assert twice(3) == 6
