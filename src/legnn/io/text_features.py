"""Features from a text column: TF-IDF, then truncated SVD, kept to transform new texts in the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from legnn.errors import InputError
from legnn.lazy import lazy_module
from legnn.typed_json import as_kind, parse_json

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

sklearn_text = lazy_module("sklearn.feature_extraction.text")

MAX_TERMS = 100_000  # bounds the components at 100,000 x channels; rarer words say little
MIN_DOCUMENTS = 2  # a word of a single text relates it to no other


class TextFeatures:
    """TF-IDF and truncated SVD: `fit` learns them from texts; they are stored as plain arrays.

    Args:
        terms: the V words, in the order of the columns.
        idf: float32 [V], inverse document frequencies.
        components: float32 [F, V], the directions of the truncated SVD.
    """

    def __init__(self, terms: Sequence[str], idf: np.ndarray, components: np.ndarray) -> None:
        if len(terms) != len(set(terms)) or idf.shape != (len(terms),) or components.shape[1:] != (len(terms),):
            raise InputError(
                f"text features need {len(terms)} different words with as many weights and columns, "
                f"got {list(idf.shape)} and {list(components.shape)}"
            )
        self.terms, self.idf, self.components = list(terms), idf, components
        self._vectorizer = _vectorizer(vocabulary=self.terms)
        self._vectorizer.idf_ = idf

    @property
    def channels(self) -> int:
        """`F`, features of each text."""
        return self.components.shape[0]

    @classmethod
    def fit(cls, texts: Sequence[str], channels: int, seed: int = 0) -> TextFeatures:
        """Learns words and directions from the texts; `channels` are fewer where there are not that many words."""
        vectorizer = _fitted_vectorizer(texts)
        counts = vectorizer.transform(texts)
        if counts.shape[1] < 2:
            raise InputError("the text column holds one word alone; features need at least two different words")
        components = min(channels, *counts.shape)
        with np.errstate(invalid="ignore"):  # equal texts have no variance, and its ratio is not used
            from sklearn.decomposition import TruncatedSVD
            from threadpoolctl import threadpool_limits

            # several threads of the linear algebra would add in another order
            with threadpool_limits(1):
                svd = TruncatedSVD(n_components=components, random_state=seed).fit(counts)
        return cls(
            vectorizer.get_feature_names_out().tolist(),
            vectorizer.idf_.astype(np.float32),
            np.ascontiguousarray(svd.components_, dtype=np.float32),
        )

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Returns features float32 [len(texts), F]; words that were not in the fitted texts are ignored."""
        if len(texts) == 0:
            return np.zeros((0, self.channels), dtype=np.float32)
        weights = self._vectorizer.transform(texts)
        return np.ascontiguousarray(weights @ self.components.T, dtype=np.float32)

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same features."""
        if not isinstance(other, TextFeatures) or self.terms != other.terms:
            return False
        return np.array_equal(self.idf, other.idf) and np.array_equal(self.components, other.components)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns all that it consists of, to be stored."""
        terms = np.frombuffer(json.dumps(self.terms).encode(), dtype=np.uint8)
        return {"terms": terms, "idf": self.idf, "components": self.components}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> TextFeatures:
        """Returns what `to_arrays` gave; raises `KeyError` or `ValueError` for anything else."""
        terms = as_kind(parse_json(arrays["terms"].tobytes()), list[str], "the terms")
        idf, components = arrays["idf"], arrays["components"]
        is_sound = all(array.dtype == np.float32 and np.isfinite(array).all() for array in (idf, components))
        if not is_sound or idf.shape != (len(terms),) or components.shape[1:] != (len(terms),):
            raise ValueError("weights of words do not fit together")
        return cls(terms, idf, components)


def _vectorizer(**options: object) -> TfidfVectorizer:
    # sublinear: ten times a word is not ten times the topic
    return sklearn_text.TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **options)


def _fitted_vectorizer(texts: Sequence[str]) -> TfidfVectorizer:
    for least in (MIN_DOCUMENTS, 1):  # of few texts, no word may be in two
        with suppress(ValueError):
            return _vectorizer(min_df=least, max_features=MAX_TERMS).fit(texts)
    raise InputError("the text column holds no words to make features of")
