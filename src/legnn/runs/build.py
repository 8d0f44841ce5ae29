"""From settings and a graph to the parts of a run: model, task, objective, trainer, inference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legnn.baselines import ARCHITECTURES, POSTPROCESS, LabelPropagation
from legnn.config import ResolvedSettings, fanouts_for
from legnn.data import GraphData
from legnn.errors import InputError, OutOfMemory, first_line
from legnn.graph import SamplingOptions
from legnn.graph.selection import check_selection
from legnn.nn import DataShape, Lift, Model
from legnn.nn.lifting import check_liftable
from legnn.ops.runtime.threads import limit_threads
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, register_pinned, seeded, select_device
from legnn.runs.folder import RunFolder
from legnn.runs.precision import matrix_products, training_modes
from legnn.runs.resources import check_memory, choose_storage, cpu_threads, explain_out_of_memory, size_of
from legnn.training import (
    Agreement,
    ASTrain,
    Batching,
    FullBatch,
    Inference,
    Objective,
    Ranks,
    Task,
    TopK,
    Trainer,
    assign_folds,
    balanced_class_weight,
    make_adam,
    require_metric,
    require_staged,
)

if TYPE_CHECKING:
    from legnn.training import LayerWise


def make_model(settings: ResolvedSettings, card: DataCard, label_x: Tensor | None) -> Model:
    """Returns a new model for the data."""
    types = max(len(card.types), 1)
    target = 0 if card.target_type is None else card.types.index(card.target_type)
    shape = DataShape(card.features, len(card.classes), types, tuple(card.relations), card.edges, label_x, target)
    return ARCHITECTURES[settings.model.architecture](settings.model, shape)


def epochs_of(settings: ResolvedSettings, graph: GraphData) -> int:
    """Returns the most epochs that a run can have: one for a model without parameters."""
    with torch.device("meta"):
        model = make_model(settings, DataCard.of(graph, fingerprint=""), graph.label_x)
    return settings.train.epochs if any(True for _ in model.parameters()) else 1


def restore_model(folder: RunFolder) -> Model:
    """Returns the model of a finished run with its best weights, on the CPU and in evaluation mode."""
    weights = folder.weights()
    # the initial weights, which are replaced, would be drawn from the caller's random state
    with torch.random.fork_rng(devices=[]):
        # label features that were given to the model are saved with its weights
        model = make_model(folder.settings, folder.card, weights.get("encoder.label_embedding.features"))
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise InputError(f"the weights in {folder.path} do not fit its settings; restore both from a copy") from None
    return model.eval()


def check_settings(settings: ResolvedSettings, graph: GraphData, card: DataCard) -> None:
    """Raises `InputError` for settings that could only fail later, before a folder is made."""
    hardware(select_device(settings.train.device)).precision(settings.train.precision)
    require_metric(settings.train.choose_by)
    if settings.model.label_edges and graph.label_adjacency is None:
        raise InputError(
            f"model.label_edges is on, but {graph.name} has no label–label edges; give them, or set "
            "`model.label_edges=false`"
        )
    # on the meta device a model takes no memory, and building it runs its own checks
    try:
        with torch.device("meta"):
            model = make_model(settings, card, graph.label_x)
    except RuntimeError as error:
        # more entries than a tensor can have
        raise OutOfMemory(f"there is no model with hidden = {settings.model.hidden:,} ({first_line(error)})") from None
    check_memory(settings, graph, model.num_parameters())
    if isinstance(settings.train.batch, int):
        require_staged(model)
    model.check_weights(weighted=graph.adjacency.weight is not None)
    if any(isinstance(module, Lift) for module in model.modules()):
        check_liftable(weighted=graph.adjacency.weight is not None, label_edges=settings.model.label_edges)
    if model.uses_labels and settings.train.selection:
        check_selection(int(graph.train_mask.sum()), settings.train.alpha)


def make_task(settings: ResolvedSettings, graph: GraphData, device: torch.device, *, training: bool = True) -> Task:
    """Returns the task on the devices where the graph is stored.

    For `training` a GPU reads features in the host's memory again and again, and they are pinned: pages of a mapped
    file become memory of the process. A prediction reads them once or a few times, in order.
    """
    storage = choose_storage(settings, graph, device)
    task = Task.from_graph(
        graph,
        storage.graph,
        features=storage.features,
        label_edges=settings.model.label_edges,
        candidates=settings.self_training.pseudo_label_nodes,
    )
    is_pinned = training and storage.features != storage.graph and register_pinned(graph.x)
    return task.with_hot_rows(storage.hot_bytes) if is_pinned else task


def make_rule(model: Model, task: Task, settings: ResolvedSettings) -> ASTrain | None:
    """Returns what selects pseudo labels, None without self-training."""
    self_training = settings.self_training
    if not self_training.as_train:
        return None
    if self_training.pseudo_label_rule == "top-k":
        return TopK(self_training)
    if self_training.pseudo_label_rule == "agreement":
        second = LabelPropagation(settings.model.label_propagation.steps, settings.model.label_propagation.alpha)
        # where the rule is asked: on the device of the model, if the graph is stored elsewhere
        device = next(model.parameters(), task.x).device
        return Agreement(self_training, second.classes(task.show(task.train)).to(device))
    return ASTrain(self_training)


def _class_weight(model: Model, task: Task, settings: ResolvedSettings) -> Tensor | None:
    if settings.train.class_weights == "none":
        return None
    # on the device of the model, where the loss is computed
    device = next(model.parameters(), task.x).device
    return balanced_class_weight(task.y[task.train], task.graph.num_classes).to(device)


def make_trainer(
    model: Model,
    task: Task,
    settings: ResolvedSettings,
    dtype: torch.dtype,
    device: torch.device,
    ranks: Ranks,
    inference_bytes: int,
) -> Trainer:
    """Returns the trainer of a run on `device`, before its first epoch."""
    train = settings.train
    objective = Objective(
        alpha=train.alpha,
        selection=train.selection,
        uses_labels=model.uses_labels,
        rule=make_rule(model, task, settings),
        class_weight=_class_weight(model, task, settings),
    )
    plan = hardware(device).plan(task.y.device, task.x.device, inference_bytes)
    sampling = None
    if not isinstance(train.batch, str):
        from legnn.training import can_capture

        sampling = SamplingOptions(fanouts_for(train.fanout, settings.model.stages))
        plan = replace(plan, capture=plan.capture and can_capture(model, sampling, objective.rule, ranks))
    groups = model.parameter_groups(train.weight_decay, train.weight_decay_layers)
    # several processes average gradients, and take the step, after what is captured
    optimizer = make_adam(groups, train.lr, capture=plan.capture and ranks.world_size == 1)
    batching: Batching
    if sampling is None:
        # a generator of its own: how many numbers dropout draws must not change which nodes are selected
        generator = torch.Generator(task.x.device).manual_seed(train.seed)
        batching = FullBatch(model, task, objective, optimizer, generator, dtype=dtype, capture=plan.capture)
    else:
        from legnn.training import MiniBatch

        # on the host, so that all processes draw alike wherever their graph is kept
        generator = torch.Generator().manual_seed(train.seed)
        batching = MiniBatch(
            model,
            task,
            objective,
            optimizer,
            generator,
            batch=int(train.batch),
            sampling=sampling,
            pseudo_steps=settings.self_training.pseudo_steps,
            dtype=dtype,
            ranks=ranks,
            plan=plan,
        )
    return Trainer(
        batching,
        lr=train.lr,
        epochs=train.epochs,
        patience=train.patience,
        cosine_steps=train.cosine_steps,
        choose_by=train.choose_by,
        ties=train.ties,
        generators=hardware(device).generators(),
    )


@contextmanager
def new_trainer(
    settings: ResolvedSettings, graph: GraphData, card: DataCard, device: torch.device, ranks: Ranks
) -> Iterator[Trainer]:
    """Context in which a run trains, seeded and in its precision, with its trainer before the first epoch."""
    precision = hardware(device).precision(settings.train.precision)
    with (
        explain_out_of_memory(settings),
        training_modes(),
        matrix_products(precision.products),
        limit_threads(cpu_threads(settings, graph)),
        seeded(settings.train.seed, device),
    ):
        task = make_task(settings, graph, device)
        model = make_model(settings, card, graph.label_x)
        model.fit_scaler(graph.x, graph.node_type)
        inference_bytes = size_of(graph, settings).inference_bytes
        yield make_trainer(model.to(device), task, settings, precision.dtype, device, ranks, inference_bytes)


def make_inference(
    predictor: Batching | LayerWise, model: Model, graph: GraphData, task: Task, settings: ResolvedSettings
) -> Inference:
    """Returns what predicts every node without its own label."""
    return Inference(
        predictor,
        task,
        assign_folds(graph.node_id, settings.train.own_label_folds),
        uses_labels=model.uses_labels,
        postprocess=POSTPROCESS[settings.model.postprocess](settings.model),
    )
