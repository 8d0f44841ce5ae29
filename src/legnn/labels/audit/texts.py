"""Words in the text column that tell the class, the name of the class among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from legnn.config import DataSettings
from legnn.datasets import CATALOG
from legnn.errors import InputError, plural
from legnn.files import data_folder
from legnn.io.table_features import read_texts
from legnn.io.table_files import optional_table_path
from legnn.io.tables import read_node_table
from legnn.labels.audit.columns import TELLS
from legnn.labels.audit.findings import Finding, conclude, not_applicable
from legnn.labels.audit.rules import LEAST_NODES
from legnn.labels.audit.subject import Subject

WORDS = 100_000
"""Most different words and pairs of words that are looked at, the most frequent ones."""

CHECK, TRIED = (
    "texts that tell the class",
    "look for a word, a pair of words or the class name in nearly all texts of one class",
)


def check_texts(subject: Subject) -> Finding:
    """Returns whether a word or the name of a class is in nearly all texts of that class and in nearly no other."""
    settings = subject.members[0].settings.data
    if not settings.text:
        return not_applicable(CHECK, TRIED, "no column of text is used")
    nodes = subject.test
    texts = _read_texts(subject, settings)
    if texts is None or len(nodes) < LEAST_NODES:
        return not_applicable(CHECK, TRIED, "the table of texts is not there, or hardly a node is for testing")
    return _find_words(subject, [texts[node].lower() for node in nodes.tolist()], subject.y[nodes])


def _read_texts(subject: Subject, settings: DataSettings) -> dict[int, str] | None:
    """The texts of the nodes of the labeled type by their position; None where there is no table."""
    types = subject.graph.node_types
    folder = Path(settings.source).expanduser()
    if settings.source in CATALOG:
        return None
    folder = folder if folder.is_dir() else data_folder() / settings.source
    place, stem = (folder, "nodes") if types is None else (folder / "nodes", types.target)
    path = optional_table_path(place, stem) if place.is_dir() else None
    if path is None:
        return None
    try:
        texts = read_texts(read_node_table(path, settings, None), settings.text)
    except (InputError, KeyError):
        return None
    rows = np.arange(subject.graph.num_nodes) if types is None else np.flatnonzero(types.target_mask.numpy())
    return dict(zip(rows.tolist(), texts, strict=True)) if len(rows) == len(texts) else None


def _find_words(subject: Subject, texts: list[str], y: np.ndarray) -> Finding:
    from sklearn.feature_extraction.text import CountVectorizer

    names = [str(name).lower() for name in subject.graph.class_names]
    size = np.bincount(y, minlength=len(names))
    # in fewer texts than the smallest class has, a word cannot tell one
    vectorizer = CountVectorizer(
        binary=True, ngram_range=(1, 2), token_pattern=r"[^\s.,;:!?()\"']+", min_df=LEAST_NODES // 2, max_features=WORDS
    )
    leaks = []
    try:
        contains = vectorizer.fit_transform(texts)
    except ValueError:  # no word is in so many texts
        return conclude(CHECK, TRIED, len(texts), leaks=[], clean="no word is in many texts")
    one_hot = np.eye(len(names), dtype=np.float32)[y]
    hits = np.asarray(contains.T @ one_hot)
    f1 = 2 * hits / (hits.sum(1, keepdims=True) + size)
    f1[:, (size < LEAST_NODES) | (2 * size > len(y))] = 0
    words = vectorizer.get_feature_names_out()
    for k, c in np.argwhere(f1 >= TELLS):
        leaks.append(f"{str(words[k])!r} is in the texts of class {subject.graph.class_names[c]!r} (F1 {f1[k, c]:.3f})")
    for c, name in enumerate(names):
        found = np.array([len(name) > 2 and name in text for text in texts])
        score = 2 * (found & (y == c)).sum() / max(found.sum() + size[c], 1)
        if size[c] >= LEAST_NODES and 2 * size[c] <= len(y) and score >= TELLS:
            leaks.append(f"the name of class {subject.graph.class_names[c]!r} is in its texts (F1 {score:.3f})")
    return conclude(CHECK, TRIED, len(texts), leaks=leaks, clean=f"none of {plural(len(words), 'word')} is")
