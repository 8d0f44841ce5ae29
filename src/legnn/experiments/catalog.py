"""The experiments by name. A new one is a function, such as those in `tables`, its variants, and an entry here."""

from __future__ import annotations

from legnn.experiments import design_table, figures, help_table, precision_table, tables, variants
from legnn.experiments.experiment import Experiment

BACKBONES = ("gcn", "sage", "gat")

_ALL = (
    Experiment(
        name="datasets",
        kind="table",
        title="Statistics of the data sets",
        make=tables.data_sets,
        data=("ogbn-arxiv",),
    ),
    Experiment(
        name="label-usage",
        kind="table",
        title="Methods of using labels",
        variants=lambda source: variants.METHODS,
        make=tables.label_usage,
        backbones=BACKBONES,
    ),
    Experiment(
        name="designs",
        kind="table",
        title="Comparison with other designs",
        variants=variants.designs,
        may_lack_runs=True,
        make=design_table.designs,
    ),
    Experiment(
        name="design-cost",
        kind="table",
        title="Time and memory of training of these designs (not in the paper)",
        variants=variants.designs,
        may_lack_runs=True,
        make=design_table.design_cost,
    ),
    Experiment(
        name="smoothness",
        kind="table",
        title="Graph difference GD and node clustering",
        variants=lambda source: variants.METHODS,
        make=tables.smoothness,
    ),
    Experiment(
        name="label-features",
        kind="table",
        title="Learned label features, and the mean features of each class",
        variants=lambda source: variants.LABEL_FEATURES,
        make=tables.label_features,
        backbones=BACKBONES,
    ),
    Experiment(
        name="node-selection",
        kind="table",
        title="Effects of training node selection",
        variants=lambda source: variants.SELECTION,
        make=tables.node_selection,
    ),
    Experiment(
        name="dropout-lr",
        kind="table",
        title="Settings of dropout and learning rate",
        make=tables.dropout_and_lr,
        data=(),
    ),
    Experiment(
        name="hyperparameters", kind="table", title="Settings of hyperparameters", make=tables.hyperparameters, data=()
    ),
    Experiment(
        name="synthetic-graphs",
        kind="table",
        title="S and homophily of synthetic graphs",
        make=tables.synthetic_graphs,
    ),
    Experiment(
        name="where-labels-help",
        kind="table",
        title="Where labels help (not in the paper)",
        variants=help_table.variants,
        make=help_table.where_labels_help,
        backbones=BACKBONES,
    ),
    Experiment(
        name="mini-batches",
        kind="table",
        title="Mini-batches beside the full batch (not in the paper)",
        variants=lambda source: variants.BATCHES,
        make=tables.scores,
        backbones=BACKBONES,
    ),
    Experiment(
        name="precision",
        kind="table",
        title="TF32 beside bf16, on a GPU (not in the paper)",
        variants=lambda source: variants.PRECISION,
        make=precision_table.precisions,
        backbones=BACKBONES,
    ),
    Experiment(
        name="training-confidence",
        kind="figure",
        title="Accuracy during training, and training confidence TC for several δ",
        variants=lambda source: (variants.LEGNN,),
        make=figures.training_confidence,
    ),
    Experiment(
        name="pseudo-labels",
        kind="figure",
        title="Accuracy of pseudo labels with and without TC",
        variants=lambda source: variants.PSEUDO_LABELS,
        make=figures.pseudo_labels,
    ),
    Experiment(
        name="probability-bands",
        kind="figure",
        title="Accuracy of pseudo labels by probability",
        variants=lambda source: variants.PSEUDO_LABELS[:1],
        make=figures.probability_bands,
    ),
    Experiment(
        name="synthetic",
        kind="figure",
        title="Methods of using labels on synthetic graphs (syn-arxiv)",
        variants=variants.synthetic,
        make=figures.synthetic,
    ),
    Experiment(
        name="visualization",
        kind="figure",
        title="t-SNE of the node representations",
        variants=lambda source: variants.METHODS,
        make=figures.visualization,
    ),
    Experiment(
        name="confidence-ablation",
        kind="figure",
        title="Effects of TC and EC in AS-Train",
        variants=lambda source: variants.ABLATION,
        make=figures.confidence_ablation,
    ),
    Experiment(
        name="cost",
        kind="figure",
        title="Parameters and inference time",
        variants=lambda source: variants.METHODS,
        make=figures.cost,
        backbones=("gcn", "sage"),
    ),
    Experiment(
        name="sensitivity",
        kind="figure",
        title="Sensitivity to α, δ, λ and D",
        variants=lambda source: variants.SENSITIVITY,
        make=figures.sensitivity,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""The tables and figures of the paper in its order, tables first."""
