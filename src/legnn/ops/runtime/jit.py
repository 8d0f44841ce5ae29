"""Python functions compiled by numba, kept on disk where there is a place for them."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numba


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`function`, compiled on its first call, without Python's lock while it runs.

    Args:
        function: of arrays and numbers; nothing checks that its indices lie within the arrays.
        **options: of `numba.njit`.
    """
    compile_it = partial(numba.njit, nogil=True, **options)
    try:
        return cast(Callable[..., Any], compile_it(cache=True)(function))
    except RuntimeError:
        # there is nowhere to keep it: neither beside the source nor in a home may be written to
        return cast(Callable[..., Any], compile_it()(function))
