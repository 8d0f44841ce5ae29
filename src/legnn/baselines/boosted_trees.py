"""Gradient-boosted trees on features of a node and its neighbors."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from legnn.baselines.label_propagation import shown_one_hot
from legnn.baselines.propagation import neighbor_mean, without_self_loops
from legnn.config.model import ModelSettings
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import DataShape, Model
from legnn.nn.features import scatter_by_type

MOST_COLUMNS, COMPONENTS = 256, 128
"""More features than the first are replaced by as many principal components as the second: a tree looks at every column
in every split, and thousands of word counts, three times over, would take hours."""

TRUSTED = ["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"]
"""Types in a saved classifier that skops does not know, beside which nothing is read."""

NEVER_SEEN = -100.0
"""Logit of a class without a training node: no chance, and a finite loss."""


class NeighborFeatures:
    """`[x_i, mean_j x_j, mean_j mean_k x_k, mean_j y_j]` of node `i`, over its neighbors `j` and their neighbors `k`.

    `y_j` is the one-hot row of a neighbor that shows its label, and zero for another. Self-loops are left out: no node
    reads its own label.
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self._whole: Adjacency | None = None

    def of(self, graph: LabelGraph) -> Tensor:
        """`[M, 3 F + C]`."""
        if self._whole is not graph.adjacency:
            # once for the graph: only the labels change
            self._whole, self._others = graph.adjacency, without_self_loops(graph)
            once = neighbor_mean(self._others, self.x)
            self._features = torch.cat([self.x, once, neighbor_mean(self._others, once)], 1)
        labels = neighbor_mean(self._others, shown_one_hot(graph).to(self.x.dtype))
        return torch.cat([self._features, labels], 1)


class Classifier(nn.Module):
    """A fitted `HistGradientBoostingClassifier` on some columns of its input, saved by skops with the weights.

    skops reads scikit-learn's own types and those of `TRUSTED`, and executes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._archive = torch.zeros(0, dtype=torch.uint8)
        self._fitted: dict[str, Any] | None = None

    def fit(self, classifier: Any, rows: np.ndarray, y: np.ndarray) -> None:
        """Fits `classifier` to `rows` `[n, F]` and their classes."""
        # a column that is the same in all rows splits nothing, and takes as long as another
        columns = (rows != rows[0]).any(0).nonzero()[0]
        fitted = {"columns": columns, "classifier": classifier.fit(rows[:, columns], y)}
        self.set_extra_state(torch.frombuffer(bytearray(_number_parts(_skops().dumps(fitted))), dtype=torch.uint8))

    def forward(self, x: Tensor) -> Tensor:
        """Scores `[n, K]` in double precision for features `x` `[n, F]`; of two classes, for the second alone."""
        if self._fitted is None:
            self._fitted = _skops().loads(self._archive.numpy().tobytes(), trusted=TRUSTED)
        scores = self._fitted["classifier"].decision_function(x.cpu().numpy()[:, self._fitted["columns"]])
        return torch.from_numpy(scores.reshape(len(x), -1)).to(x.device)

    def get_extra_state(self) -> Tensor:
        """Returns the saved classifier, empty before `fit`: part of the module's `state_dict`."""
        return self._archive

    def set_extra_state(self, state: Tensor) -> None:
        """Takes a saved classifier, which is read when it is first used."""
        self._archive, self._fitted = state.cpu(), None


def _number_parts(archive: bytes) -> bytes:
    """The archive with its parts numbered in their order: skops names them by addresses, so that no two are alike."""
    source, out = zipfile.ZipFile(io.BytesIO(archive)), io.BytesIO()
    schema = source.read("schema.json").decode()
    numbers = {name: str(k) for k, name in enumerate(dict.fromkeys(re.findall(r'"__id__": (\d+)', schema)))}

    def renamed(text: str) -> str:
        return re.sub(r'(?<="__id__": )\d+|\d+(?=\.npy)', lambda match: numbers[match[0]], text)

    with zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            content = renamed(schema).encode() if name == "schema.json" else source.read(name)
            # with the date that `ZipInfo` has by default, not today's
            target.writestr(zipfile.ZipInfo(renamed(name)), content)
    return out.getvalue()


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise InputError("boosted_trees needs the package skops; install it with: pip install skops") from None
    return skops.io


class BoostedTrees(Model):
    """scikit-learn's `HistGradientBoostingClassifier` on `NeighborFeatures`, fitted once.

    scikit-learn, not LightGBM: it is needed anyway, and its trees can be saved without a pickle. On the same rows of
    cora, chameleon-filtered and actor LightGBM's validation accuracy is between 1.2 points lower and 1.4 higher, with
    the sign depending on graph and settings, and fitting takes half the time to as long (`benchmarks/trees.py`).
    """

    full_batch_reason = "trees are fitted to all training nodes"
    uses_labels = True
    is_known: Tensor
    """`[C]` whether a class had training nodes."""
    components: Tensor | None
    """`[F, COMPONENTS]` what many features are projected on."""

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__()
        if data.classes < 2:
            raise InputError("boosted_trees needs at least two classes; the data have one")
        self.settings, self.num_classes, self.num_types = settings, data.classes, data.types
        self.trees = Classifier()
        self.register_buffer("is_known", torch.zeros(data.classes, dtype=torch.bool))
        is_wide = data.features > MOST_COLUMNS
        self.register_buffer("components", torch.zeros(data.features, COMPONENTS) if is_wide else None)

    def fit_scaler(self, x: Tensor, node_type: Tensor | None = None) -> None:
        """Computes the principal components of many features `[M, F]`."""
        if self.components is not None:
            directions = torch.svd_lowrank(x, min(COMPONENTS, *x.shape))[2]
            self.components[:, : directions.size(1)] = directions

    def prepare(self, x: Tensor, dtype: torch.dtype | None = None, node_type: Tensor | None = None) -> NeighborFeatures:
        """Features `[M, F]` as they are: trees need no scale, and no other precision; types in columns of their own."""
        x = x if self.components is None else x @ self.components
        return NeighborFeatures(x if node_type is None else scatter_by_type(x, node_type, self.num_types))

    def forward(self, inputs: NeighborFeatures, graph: LabelGraph) -> Tensor:
        """Logits `[M, C]`; zero before they are fitted."""
        logits = torch.zeros(graph.num_nodes, self.num_classes, device=inputs.x.device)
        known = self.is_known.nonzero().flatten()
        if known.numel() == 0:
            return logits
        raw = self.trees(inputs.of(graph)).to(logits.dtype)
        if raw.size(1) == 1:
            # of two classes, the trees score the second alone
            raw = torch.cat([torch.zeros_like(raw), raw], 1)
        return logits.fill_(NEVER_SEEN).index_copy(1, known, raw)

    def fit_labels(self, inputs: NeighborFeatures, graph: LabelGraph, nodes: Tensor, y: Tensor) -> None:
        """Fits the trees to the classes `y` of `nodes`, on the host."""
        known, target = torch.unique(y, return_inverse=True)
        if known.numel() < 2:
            raise InputError("boosted_trees needs training nodes of at least two classes, and all are of one")
        rows = inputs.of(graph).index_select(0, nodes).cpu()
        self.trees.fit(self.classifier(len(rows)), rows.numpy(), target.cpu().numpy())
        self.is_known.zero_().index_fill_(0, known, True)

    def classifier(self, rows: int) -> Any:
        """scikit-learn's classifier with these settings, for so many rows."""
        # not every command needs scikit-learn, which takes a moment to import
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            learning_rate=self.settings.boosted_trees.learning_rate,
            max_iter=self.settings.boosted_trees.trees,
            max_leaf_nodes=self.settings.boosted_trees.leaves,
            # its default, 20, is all nodes of a class where labels are few
            min_samples_leaf=max(1, min(20, rows // (5 * self.num_classes))),
            max_bins=max(2, min(255, rows)),
            early_stopping=False,
            random_state=int(torch.randint(2**31, ())),
        )
