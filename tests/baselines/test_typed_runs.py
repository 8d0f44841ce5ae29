"""Models that tell node types and relations apart: full batch, mini-batches, layer by layer, resumed, refused."""

from contextlib import nullcontext

import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments, model_settings
from tests.typed_graphs import small_hetero, with_tags
from torch.utils._python_dispatch import TorchDispatchMode

import legnn
from legnn.baselines import ARCHITECTURES
from legnn.config.designs import DESIGNS
from legnn.datasets import load
from legnn.errors import InputError, Interrupted
from legnn.graph import sample_label_graph
from legnn.nn import DataShape, StagedModel
from legnn.training import Task
from legnn.training.layer_wise import LayerWise

QUICK = {"hidden": 8, "heads": 2, "layers": 2, "epochs": 3, "checkpoint_seconds": 0}
BACKBONES = {
    f"{backbone}, {labels}": {"backbone": backbone, "labels": labels}
    for backbone in ("rgcn", "hgt")
    for labels in ("vanilla", "enhanced")
}
PEERS = {
    name: dict(design.model)
    for name, design in DESIGNS.items()
    if design.is_typed and design.model.get("model.architecture", "mlp") in ARCHITECTURES
}
MODELS = {**BACKBONES, **{name: {"architecture": model["architecture"]} for name, model in PEERS.items()
                         if model.get("architecture", "mlp") != "mlp"}}  # fmt: skip


def made(name: str, **options) -> tuple[StagedModel, Task]:
    """The model with weights that make a difference, and the task of a small graph of three types."""
    data = load(with_tags(small_hetero()), self_loops=False)
    torch.manual_seed(0)
    settings = model_settings(**{"hidden": 8, "heads": 2, "layers": 2, **MODELS[name], **options})
    shape = DataShape(data.x.size(1), 3, data.num_types, tuple(data.relations()), data.adjacency.num_edges)
    model = ARCHITECTURES[settings.architecture](settings, shape)
    model.fit_scaler(data.x, data.node_type)
    return model, Task.from_graph(data, torch.device("cpu"))


@pytest.mark.parametrize("name", MODELS)
def test_layer_by_layer_gives_the_logits_of_the_full_batch(name):
    model, task = made(name)
    graph, nodes = task.show(task.train), torch.cat([task.val, task.test])
    model.eval()
    with torch.no_grad():
        expected = model(model.prepare(task.x, node_type=task.node_type), graph)[nodes]
    parts = LayerWise(model, task, torch.device("cpu"), torch.float32, chunk_size=16)
    assert not parts.is_at_once
    torch.testing.assert_close(parts.logits(task.train, nodes), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in MODELS if "enhanced" not in name])
def test_a_sample_of_all_neighbors_has_the_logits_of_the_full_batch(name):
    model, task = made(name)
    model.eval()
    sample = sample_label_graph(task.graph, task.val, (None, None), (1, 2))
    with torch.no_grad():
        expected = model(model.prepare(task.x, node_type=task.node_type), task.graph)[task.val]
        found = model(model.prepare_rows(task.x[sample.nodes], node_type=task.node_type[sample.nodes]), sample)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", ["full", 6])
def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path, name, batch):
    data = with_tags(small_hetero())
    options = {**MODELS[name], **QUICK, "batch": batch, "fanout": "3", "as_train": True, "pseudo_label_threshold": 0.4}
    options |= {"use_tc": False, "self_loops": False}
    whole = legnn.train(data, **arguments(**options), out=tmp_path / "whole")
    epochs = []
    stops = {"on_epoch": epochs.append, "should_stop": lambda: len(epochs) == 2}
    with pytest.raises(Interrupted):
        legnn.train(data, **arguments(**stops, **options), out=tmp_path / "cut")
    resumed = legnn.resume(tmp_path / "cut", data)
    pd.testing.assert_frame_equal(resumed.predictions, whole.predictions, check_exact=True)
    again = legnn.Run.open(tmp_path / "whole").predict(data)
    pd.testing.assert_frame_equal(again, whole.predictions, check_exact=True)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in BACKBONES])
def test_a_homogeneous_graph_is_refused_before_a_folder_is_made(tmp_path, name):
    title = DESIGNS[name].title
    with pytest.raises(InputError, match=f"{title} needs several node types"):
        legnn.train(small_data(), **arguments(**QUICK, architecture=name), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", BACKBONES)
def test_a_backbone_takes_a_homogeneous_graph(name):
    run = legnn.train(small_data(), **arguments(**MODELS[name], **QUICK))
    assert run.result.epochs == 3


class NoSynchronization(TorchDispatchMode):
    """Fails where an operation would wait for a GPU: whose result is read on the host, or has a size that depends."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        waits = (
            "aten._local_scalar_dense.",
            "aten.nonzero",
            "unique",
            "aten.masked_select.",
            "aten.bincount.",
            "aten.equal.",
        )
        assert not any(name in str(func) for name in waits), func
        if "aten.index." in str(func):
            assert not any(index is not None and index.dtype == torch.bool for index in args[1])
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("name", MODELS)
def test_once_the_graph_is_known_a_step_does_not_synchronize(name):
    model, task = made(name, dropout=0.2)
    inputs = model.prepare(task.x, node_type=task.node_type)
    for number in (0, 1):
        graph = task.show(task.train[number:])
        with NoSynchronization() if number else nullcontext():
            model(inputs, graph).sum().backward()


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_is_taken(name):
    model, task = made(name)
    logits = model(model.prepare(task.x, torch.bfloat16, task.node_type), task.show(task.train))
    assert logits.dtype == torch.float32
    logits.sum().backward()
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_has_a_gradient(name):
    model, task = made(name, hidden=6, norm="layer")
    logits = model(model.prepare(task.x, node_type=task.node_type), task.show(task.train))
    logits[task.val].square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_edges_of_a_relation_that_the_model_does_not_know_are_refused(name):
    model, task = made(name)
    graph = task.graph
    flipped = type(graph)(graph.adjacency, graph.shown, graph.y, 3, None, (graph.node_type + 1) % 3)
    with pytest.raises(InputError, match="there are edges from nodes of type"):
        model(model.prepare(task.x, node_type=flipped.node_type), flipped)
