"""`LEGNNClassifier` and `AutoLEGNNClassifier`: runs with the conventions of scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from legnn.config import COMMON, Settings, collect
from legnn.data.splits import draw_split, to_masks
from legnn.datasets.arrays import EdgeArrays, Labels, number_labels
from legnn.datasets.objects import edges_among
from legnn.errors import InputError
from legnn.lazy import lazy_module
from legnn.runs import Result
from legnn.runs.fitted import FittedGraph
from legnn.runs.graphs import load_new
from legnn.runs.progress import Callbacks
from legnn.runs.session import resolve_for, start_run
from legnn.search.auto import auto

if TYPE_CHECKING:
    from torch_geometric.data import Data

pyg_data = lazy_module("torch_geometric.data")


# scikit-learn reads the parameters from the generated constructor
@dataclass(kw_only=True, eq=False, repr=False)
class _GraphClassifier(ClassifierMixin, BaseEstimator):
    """Base of both classifiers: the graph of the rows, the split, predictions of new rows."""

    n_neighbors: int = 10
    validation_fraction: float = 0.2
    random_state: Any = 0
    settings: Mapping[str, Any] | None = None
    backbone: str | None = None
    labels: str | None = None
    as_train: bool | None = None
    hidden: int | None = None
    layers: int | None = None
    dropout: float | None = None
    lr: float | None = None
    epochs: int | None = None
    batch: int | str | None = None
    class_weights: str | None = None
    choose_by: str | None = None
    device: str | None = None

    def fit(self, X: Any, y: Any, graph: Any = None) -> Any:
        """Trains on rows `X` `[n, F]`, of which some or all have a class in `y` `[n]`, and returns itself.

        Args:
            X: features; unlabeled rows are part of the graph, too.
            y: classes; -1, NaN or None is unlabeled. `validation_fraction` of the labeled rows of each class choose the
                best epoch; the others are trained on.
            graph: edges among the rows: an array `[2, E]` or `[E, 2]`, a SciPy matrix, a NetworkX graph or a PyG
                `Data`; None for edges from the `n_neighbors` nearest rows.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2)
        x = torch.from_numpy(np.array(X.toarray() if sparse.issparse(X) else X))
        labels = self._labels(X, y)
        seed = self._seed()
        edges = _edges_from_neighbors(self._nearest(x)) if graph is None else edges_among(graph, len(x))
        masks = to_masks(self._draw(labels, seed))
        number = torch.from_numpy(labels.y)
        data = pyg_data.Data(x=x, y=number, edge_index=edges.edge_index, edge_weight=edges.weight, **masks)
        data.class_names = labels.names.tolist()
        self.classes_ = labels.names
        self._fitted, predicted, self.result_ = self._train(data, seed)
        self._has_graph = graph is not None
        number_of = {name: c for c, name in enumerate(data.class_names)}
        classes = np.array([number_of[name] for name in predicted])
        self.transduction_ = self.classes_[np.where(labels.y >= 0, labels.y, classes)]
        return self

    def predict_proba(self, X: Any, graph: Any = None) -> np.ndarray:
        """Returns the probabilities `[n, C]` of the classes `classes_` for rows `X`.

        Fitted without a graph, a row is joined to the `n_neighbors` nearest rows of `fit`, and does not depend on the
        other rows of `X`. Fitted with a graph, `X` is that of `fit`, and none of its rows is predicted from its own
        label; or `X` is other rows, with their edges as `graph`, in which the rows of `fit` come first: 0 to n - 1 are
        those of `fit`, and those of `X` follow.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float32)
        x = torch.from_numpy(np.array(X.toarray() if sparse.issparse(X) else X))
        device, known = self.device or "auto", self._fitted.data.x
        if graph is not None:
            edges = edges_among(graph, len(known) + len(x))
            probabilities = self._fitted.predict_grown(x, edges, device)
        elif not self._has_graph:
            probabilities = self._fitted.predict_joined(x, self._nearest(known, x), device)
        elif torch.equal(x, known):
            probabilities = self._fitted.predict_own(device)
        else:
            raise InputError(
                "it was fitted with a graph, and these rows are not those of fit; give their edges as graph, in which "
                f"the {len(known)} rows of fit come first"
            )
        return np.asarray(probabilities.numpy())

    def predict(self, X: Any, graph: Any = None) -> np.ndarray:
        """Returns the most probable class of each row; arguments as in `predict_proba`."""
        probabilities = self.predict_proba(X, graph)
        return np.asarray(self.classes_[probabilities.argmax(1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _train(self, data: Data, seed: int) -> tuple[FittedGraph, Any, Result]:
        """Returns what was trained, the class of every row, and the scores."""

    def _settings(self, preset: str | None, seed: int) -> Settings:
        common = {name: getattr(self, name) for name in COMMON if hasattr(self, name)}
        return collect(self.settings, {**common, "seed": seed}, preset=preset)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _labels(self, X: Any, y: Any) -> Labels:
        name = type(self).__name__
        if y is None:
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        y = column_or_1d(np.array(y, dtype=object) if isinstance(y, list) else y, warn=True)
        check_consistent_length(X, y)
        labels = number_labels(y)
        check_classification_targets(labels.names[labels.y[labels.y >= 0]])
        if len(labels.names) < 2:
            problem = (
                "no row has a label"
                if len(labels.names) == 0
                else f"every label is {labels.names.tolist()[0]!r}: 1 class"
            )
            raise InputError(f"{problem}; {name} needs two classes or more")
        return labels

    def _draw(self, labels: Labels, seed: int) -> Any:
        if not 0 < self.validation_fraction < 1:
            raise InputError(f"validation_fraction must be above 0 and below 1, got {self.validation_fraction!r}")
        size = np.bincount(labels.y[labels.y >= 0])
        val = np.clip(np.rint(self.validation_fraction * size).astype(np.int64), 1, None)
        # a class of one row is trained on
        val = np.minimum(val, size - 1)
        if not val.any():
            raise InputError("every class has one labeled row; one of them needs two, to choose the best epoch by")
        return draw_split(torch.from_numpy(labels.y), size - val, val, seed)

    def _nearest(self, known: torch.Tensor, x: torch.Tensor | None = None) -> np.ndarray:
        """`[n, k]` the nearest of the rows `known` of each row of `x`; for None, of those rows, without themselves."""
        if not isinstance(self.n_neighbors, int | np.integer) or self.n_neighbors < 1:
            raise InputError(f"n_neighbors must be a whole number above 0, got {self.n_neighbors!r}")
        number = min(int(self.n_neighbors), len(known) - (x is None))
        # on one thread: which of equally near rows is taken depends on their number
        with threadpool_limits(1):
            index = NearestNeighbors(n_neighbors=number).fit(known.numpy())
            neighbors = index.kneighbors(None if x is None else x.numpy(), return_distance=False)
        return np.asarray(neighbors)


def _edges_from_neighbors(neighbors: np.ndarray) -> EdgeArrays:
    rows = np.arange(len(neighbors)).repeat(neighbors.shape[1])
    return EdgeArrays(torch.from_numpy(np.stack([neighbors.flatten(), rows])))


@dataclass(kw_only=True, eq=False, repr=False)
class LEGNNClassifier(_GraphClassifier):
    """Trains one model on rows and the graph among them, as `legnn.train` does, and predicts rows that join it.

    >>> LEGNNClassifier(hidden=64, epochs=100).fit(X, y).predict(X_new)
    >>> LEGNNClassifier().fit(X, y, graph=adjacency).transduction_

    Args:
        preset: chooses the settings that are left open; `recommended` by default.
        n_neighbors: edges to a row, from the rows nearest to it, where `fit` gets no graph, and to new rows.
        validation_fraction: of the labeled rows of a class, those by which the best epoch is chosen.
        random_state: seed of the weights, of dropout and of the validation rows; None for a new one in each `fit`.
        settings: all other settings by dotted name, such as `{"train.patience": 20}`.
        backbone, labels, ...: the common settings of `legnn.train`; None leaves a setting to the preset.

    Attributes: `classes_`, `n_features_in_`, `transduction_` (the class of every row of `fit`: the given one, else the
    predicted one) and `result_` (scores of the run).
    """

    preset: str | None = None

    def _train(self, data: Data, seed: int) -> tuple[FittedGraph, Any, Result]:
        graph, resolved = resolve_for(*load_new(self._settings(self.preset, seed), data))
        run = start_run(graph, resolved, None, Callbacks(lambda log: None, lambda: False))
        return FittedGraph(data, [run], [1.0]), run.predictions["prediction"], run.result


@dataclass(kw_only=True, eq=False, repr=False)
class AutoLEGNNClassifier(_GraphClassifier):
    """Searches models for rows and the graph among them, as `legnn.auto` does; for the rest like `LEGNNClassifier`.

    >>> AutoLEGNNClassifier(budget="2m").fit(X, y).predict(X_new)

    Args:
        budget: seconds of a `fit`, or a time such as `"90s"` or `"10m"`.
        n_neighbors: as in `LEGNNClassifier`, like the two that follow.
        validation_fraction: of the labeled rows of a class, those by which models are chosen.
        random_state: seed of the models, the search and the validation rows.
        single: keep the best single model in the place of an ensemble.
        jobs: candidates that train at a time, as in `auto`.
        only: names of candidates instead of the portfolio.
        settings, backbone, ...: as in `LEGNNClassifier`, for every candidate.
    """

    budget: float | str = "1m"
    single: bool = False
    jobs: int | None = None
    only: list[str] | None = None

    def _train(self, data: Data, seed: int) -> tuple[FittedGraph, Any, Result]:
        options = {name: getattr(self, name) for name in ("budget", "single", "jobs", "only")}
        with TemporaryDirectory() as folder:
            ensemble = auto(data, out=Path(folder) / "search", settings=self._settings(None, seed), **options)
            predicted, result = ensemble.predictions["prediction"], ensemble.result
            return FittedGraph(data, ensemble.members, ensemble.weights, ensemble.temperature), predicted, result
