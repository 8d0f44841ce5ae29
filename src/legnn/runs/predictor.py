"""The interface of everything that predicts: a run, an ensemble, the runs of several seeds, cross-fitted runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, plural
from legnn.lazy import pandas as pd
from legnn.runs.data_card import DataCard
from legnn.runs.evaluation import Evaluation, evaluate_probabilities
from legnn.runs.prediction_tables import predictions_table, probabilities_table, probability_columns, top_table
from legnn.runs.result import Result
from legnn.training import title_of
from legnn.training.inference import top_classes

if TYPE_CHECKING:
    from legnn.runs.run import Run


class Predictor(ABC):
    """Predicts the nodes of the graph it was trained on, or of another one, none from its own label.

    >>> predictor = legnn.open("runs/first")
    >>> predictor.predict()                 # its own graph; predictor.predict(data) for one that has grown
    """

    kind: ClassVar[str]
    """`run`, `ensemble`, `seeds` or `cross_fit`."""

    if TYPE_CHECKING:
        # for the type checker alone: fields of the subclasses, which are dataclasses, would take them as defaults

        @property
        def card(self) -> DataCard:
            """The data it was trained on."""

        @property
        def members(self) -> list[Run]:
            """The runs that predict together."""

        @property
        def weights(self) -> list[float]:
            """Weights of the members, with the sum 1."""

        @property
        def temperature(self) -> float:
            """The temperature of the weighted mean of the members' probabilities; 1 leaves it as it is."""

        @property
        def result(self) -> Result:
            """Scores, time and size."""

        @property
        def folder(self) -> Path | None:
            """The folder in which it is stored; None for one in memory."""

    def predict(self, data: Source | None = None, top: int | None = None, *, device: str = "auto") -> pd.DataFrame:
        """Returns id, prediction, confidence and split of every node of the labeled type.

        Args:
            data: any graph with the features and classes of the run, such as its own grown by nodes and edges. Nodes
                of the run are recognized by their ids (`node_id` of a PyG `Data`) and stay in their split; any other
                node that has a label and is not marked val or test shows it. Without ids, a graph with as many nodes
                and the same edges is the run's own; all nodes of any other graph are new, and those of its training
                mask show their labels. None for the run's own graph.
            top: adds `label`, the true class where it is known, and the classes after the most probable one with their
                probabilities: `prediction_2`, `confidence_2` and so on up to this many.
            device: `auto`, `cpu` or `cuda`.

        No prediction depends on the node's own label.
        """
        if top is not None and top < 1:
            raise InputError(f"top must be at least 1, got {top}")
        graph, highest = self._highest(data, top or 1, device)
        return predictions_table(graph, highest[:, 0]).frame if top is None else top_table(graph, highest)

    def predict_proba(self, data: Source | None = None, *, device: str = "auto") -> pd.DataFrame:
        """Returns the probability of every class, a column each, by node id; arguments as in `predict`."""
        return probabilities_table(*self.probabilities(data, device=device))

    def evaluate(self, data: Source | None = None, *, device: str = "auto") -> Evaluation:
        """Returns scores of splits and classes, and the confusion of classes; arguments as in `predict`."""
        return evaluate_probabilities(*self._labeled(data, device))

    @property
    @abstractmethod
    def predictions(self) -> pd.DataFrame:
        """id, prediction, confidence and split of every node of the labeled type, as they are stored."""

    @abstractmethod
    def probabilities(self, data: Source | None = None, *, device: str = "auto") -> tuple[GraphData, Tensor]:
        """Returns the graph that is predicted and the probabilities `[M, C]` of its nodes; as in `predict`."""

    @abstractmethod
    def with_members(self, members: list[Run]) -> Predictor:
        """Returns the same predictor with other members, such as the same runs on other graphs."""

    @property
    def heaviest(self) -> Run:
        """The member with the largest weight."""
        return self.members[self.weights.index(max(self.weights))]

    def _highest(self, data: Source | None, top: int, device: str) -> tuple[GraphData, Tensor]:
        """The graph and the most probable classes of its nodes with their probabilities `[M, k, 2]`."""
        graph, p = self.probabilities(data, device=device)
        return graph, top_classes(p, top)

    def _labeled(self, data: Source | None, device: str) -> tuple[GraphData, Tensor]:
        """The graph and the probabilities `[n, C]` of its labeled nodes."""
        graph, p = self.probabilities(data, device=device)
        return graph, p[graph.labeled_nodes]

    @property
    @abstractmethod
    def title(self) -> str:
        """The model in a few words."""

    @property
    def summary(self) -> Any:
        """The scores that are shown: those of the result; of several seeds or folds, means and deviations."""
        return self.result

    def __repr__(self) -> str:
        card, scores = self.card, self.summary
        parts = [f"{self.title} on {card.name} ({plural(card.nodes, 'node')}, {len(card.classes)} classes)"]
        splits = {"test accuracy": scores.test, "validation accuracy": scores.val}
        parts += [", ".join(f"{name} {_written(values['accuracy'])}" for name, values in splits.items() if values)]
        parts += [f"{scores.parameters:,} parameters, {scores.seconds:.1f} s"]
        parts += ["in memory" if self.folder is None else f"stored in {self.folder}"]
        return "; ".join(filter(None, parts)) + "."

    def _repr_html_(self) -> str:
        scores = self.summary
        splits = {
            "test": scores.test,
            "validation": scores.val,
            "training, own label masked": getattr(scores, "train_masked", None),
        }
        columns = {
            split: {title_of(name): _written(value) for name, value in values.items()}
            for split, values in splits.items()
            if values
        }
        return f"<p>{escape(repr(self))}</p>" + pd.DataFrame(columns).to_html(border=0, na_rep="")


def _written(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def predict_with_probabilities(predictor: Predictor, data: Source | None = None, *, device: str) -> pd.DataFrame:
    """Returns the table of `predict` with the true class and the probability `p_CLASS` of every class."""
    return probability_columns(*predictor.probabilities(data, device=device))
