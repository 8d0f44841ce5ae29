"""How many threads scikit-learn takes."""

from __future__ import annotations

from typing import Any

import torch

ROWS_PER_THREAD = 2000
"""With fewer rows a thread waits longer than it works, and it waits busily: on a machine that others use as well, a
t-SNE of 2,400 nodes took 2.7 times as long on two threads as on one."""


def limit_threads(rows: int) -> Any:
    """Returns a context in which scikit-learn computes `rows` rows on no more threads than are worth it."""
    # it comes with scikit-learn, which takes a second to import
    from threadpoolctl import threadpool_limits

    return threadpool_limits(max(min(rows // ROWS_PER_THREAD, torch.get_num_threads()), 1))
