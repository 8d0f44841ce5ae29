"""Features from a text column: TF-IDF, then truncated SVD, kept so that new texts get the same features."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from legnn.errors import InputError, first_line
from legnn.files import atomic_write

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

MOST_TERMS = 100_000  # bounds the components at 100,000 x channels; rarer words say little
LEAST_DOCUMENTS = 2  # a word of one text alone joins nothing


class TextFeatures:
    """The words, their weights and the directions that turn a text into features.

    `fit` learns them from texts; `save` and `load` carry them, without pickle, beside a trained model.

    Args:
        terms: the V words, in the order of the columns.
        idf: float32 [V], inverse document frequency of each word.
        components: float32 [F, V], the directions of the truncated SVD.
    """

    def __init__(self, terms: Sequence[str], idf: np.ndarray, components: np.ndarray) -> None:
        if len(terms) != len(set(terms)) or idf.shape != (len(terms),) or components.shape[1:] != (len(terms),):
            raise InputError(
                f"text features need {len(terms)} different words with as many weights and columns, "
                f"got {list(idf.shape)} and {list(components.shape)}"
            )
        self.terms = list(terms)
        self.idf = idf
        self.components = components
        self._vectorizer = _vectorizer(vocabulary=self.terms)
        self._vectorizer.idf_ = idf

    @property
    def channels(self) -> int:
        """Number of features F of each text."""
        return self.components.shape[0]

    @classmethod
    def fit(cls, texts: Sequence[str], channels: int, seed: int = 0) -> TextFeatures:
        """Learn words and directions from the texts; as many channels as asked, or as the texts allow.

        Args:
            texts: a text for each node; an empty one is fine.
            channels: most features.
            seed: of the randomized SVD.
        """
        vectorizer = _fitted_vectorizer(texts)
        counts = vectorizer.transform(texts)
        if counts.shape[1] < 2:
            raise InputError("the text column holds one word alone; features need at least two different words")
        most = min(channels, *counts.shape)
        with np.errstate(invalid="ignore"):  # equal texts have no variance to explain, and none is asked for
            from sklearn.decomposition import TruncatedSVD

            svd = TruncatedSVD(n_components=most, random_state=seed).fit(counts)
        return cls(
            vectorizer.get_feature_names_out().tolist(),
            vectorizer.idf_.astype(np.float32),
            np.ascontiguousarray(svd.components_, dtype=np.float32),
        )

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Features of the texts, float32 [len(texts), F]; words never seen in fitting count for nothing."""
        if len(texts) == 0:
            return np.zeros((0, self.channels), dtype=np.float32)
        weights = self._vectorizer.transform(texts)
        return np.ascontiguousarray(weights @ self.components.T, dtype=np.float32)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, whole or not at all."""
        terms = np.frombuffer(json.dumps(self.terms).encode(), dtype=np.uint8)
        with atomic_write(Path(path)) as file:
            file.write(save({"terms": terms, "idf": self.idf, "components": self.components}))

    @classmethod
    def load(cls, path: str | Path) -> TextFeatures:
        """Read what `save` wrote; nothing in the file is executed."""
        try:
            tensors = load_file(path)
            terms = json.loads(tensors["terms"].tobytes().decode())
            return cls(terms, tensors["idf"], tensors["components"])
        except (OSError, SafetensorError, KeyError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise InputError(f"{path} does not hold text features ({first_line(error)})") from error


def _vectorizer(**options: object) -> TfidfVectorizer:
    # importing scikit-learn takes seconds, which data without texts need not wait for
    from sklearn.feature_extraction.text import TfidfVectorizer

    # sublinear: a word said ten times is not ten times the topic
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **options)


def _fitted_vectorizer(texts: Sequence[str]) -> TfidfVectorizer:
    try:
        return _vectorizer(min_df=LEAST_DOCUMENTS, max_features=MOST_TERMS).fit(texts)
    except ValueError:  # so few texts that no word comes twice
        try:
            return _vectorizer(max_features=MOST_TERMS).fit(texts)
        except ValueError as error:
            raise InputError("the text column holds no words to make features of") from error
