"""An index from ids to positions in the node table."""

from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from legnn.io.columns import as_text


class NodeIndex:
    """Finds the positions of keys among `ids` `[M]`, which are all different and not null."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        self._is_int = pa.types.is_int64(ids.type)
        self._is_range = self._is_int and np.array_equal(ids.to_numpy(zero_copy_only=False), np.arange(len(ids)))

    def find(self, keys: pa.Array) -> np.ndarray:
        """Returns the position of each key, int64 `[len(keys)]`; -1 where it is missing or null.

        Integers are compared by value, keys of another type than the ids as text.
        """
        if not self._is_int or not pa.types.is_int64(keys.type):
            return self._texts.get_indexer(as_text(keys).to_numpy(zero_copy_only=False)).astype(np.int64)
        numbers = keys.fill_null(-1).to_numpy(zero_copy_only=False)
        if self._is_range:
            # as unsigned, a negative number is above them all
            return np.where(numbers.view(np.uint64) < len(self._ids), numbers, -1)
        position = self._values.get_indexer(numbers).astype(np.int64)
        if keys.null_count:
            position[keys.is_null().to_numpy(zero_copy_only=False)] = -1
        return position

    @cached_property
    def _values(self) -> pd.Index:
        return pd.Index(self._ids.to_numpy(zero_copy_only=False))

    @cached_property
    def _texts(self) -> pd.Index:
        return pd.Index(as_text(self._ids).to_numpy(zero_copy_only=False), dtype=object)
