"""What a run knows of each node before it classifies."""

from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments
from tests.typed_graphs import small_hetero

import legnn
from legnn.errors import InputError
from legnn.training import LayerWise, Task

QUICK = {"epochs": 4, "hidden": 12, "layers": 2, "own_label_folds": 3}
USAGES = [
    {"labels": "vanilla"},
    {"labels": "concat", "backbone": "gat"},
    {"labels": "addition", "backbone": "sage"},
    {"labels": "enhanced"},
    {"labels": "enhanced", "label_features": "class-mean", "layers": 3, "norm": "layer"},
]


@pytest.fixture(scope="module", params=USAGES, ids=str)
def run(request):
    return legnn.train(small_data(), **arguments(**{**QUICK, **request.param}))


def classified(run, z):
    with torch.no_grad():
        return torch.softmax(run.model.classify(torch.from_numpy(z)), -1).numpy()


def test_without_their_own_label_they_classify_to_the_predictions(run):
    found = run.representations()
    np.testing.assert_allclose(classified(run, found.nodes_without_own_label), run.predict_proba(), atol=1e-6)


def test_with_all_training_labels_shown_they_are_those_of_the_model(run):
    found, graph = run.representations(), run.graph
    task = Task.from_graph(graph, torch.device("cpu"))
    shown = task.train if run.model.uses_labels else task.train[:0]
    with torch.no_grad():
        expected = run.model.embed(run.model.prepare(task.x), task.show(shown))
    np.testing.assert_allclose(found.nodes, expected.nodes, atol=1e-6)
    assert (found.labels is None) == (expected.labels is None) == (run.settings.model.labels != "enhanced")
    if expected.labels is not None:
        np.testing.assert_allclose(found.labels, expected.labels, atol=1e-6)
    is_train = found.split == "train"
    assert np.array_equal(found.nodes[~is_train], found.nodes_without_own_label[~is_train])
    assert np.array_equal(found.nodes, found.nodes_without_own_label) == (not run.model.uses_labels)


class LayerByLayer(legnn.Run):
    """A run whose graph does not fit the memory of the device: it is computed in small chunks, layer by layer."""

    @contextmanager
    def inference(self, graph, *, device="auto"):
        with super().inference(graph, device=device) as (layer_wise, inference):
            plan = replace(layer_wise.plan, at_once=False, chunk_bytes=500)
            staged = LayerWise(layer_wise.model, layer_wise.task, layer_wise.device, layer_wise.dtype, plan=plan)
            assert not staged.is_at_once
            yield staged, replace(inference, predictor=staged)


def layer_by_layer(run):
    return LayerByLayer(**{one.name: getattr(run, one.name) for one in fields(run)})


def test_layer_by_layer_they_are_the_same(run):
    expected = run.representations()
    found = layer_by_layer(run).representations()
    for name in ("nodes", "nodes_without_own_label", "labels"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("is_staged", [False, True], ids=["at once", "layer by layer"])
@pytest.mark.parametrize("usage", USAGES, ids=str)
def test_on_a_gpu_they_are_the_same_within_its_precision(usage, is_staged):
    # a run keeps its precision, which is bf16 on a GPU where nothing else is given
    run = legnn.train(small_data(), **arguments(**{**QUICK, **usage}, precision="tf32"))
    expected = run.representations(device="cpu")
    found = (layer_by_layer(run) if is_staged else run).representations(device="cuda")
    for name in ("nodes", "nodes_without_own_label", "labels"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=2e-2)


def test_ids_splits_and_classes_are_those_of_the_predictions(run):
    found = run.representations()
    assert found.node_id.tolist() == run.predictions["id"].tolist()
    assert found.split.tolist() == run.predictions["split"].tolist()
    assert found.y.tolist() == small_data().y.tolist()
    assert found.nodes.shape == (40, 12)
    assert found.nodes.dtype == np.float32


def test_a_row_does_not_depend_on_its_own_label():
    run = legnn.train(small_data(), **arguments(**QUICK))
    before = run.representations()
    for node in np.flatnonzero(before.split == "train")[:5].tolist():
        data = small_data()
        data.y[node] = (data.y[node] + 1) % 3
        after = run.representations(data)
        assert np.array_equal(after.nodes_without_own_label[node], before.nodes_without_own_label[node])
        assert not np.array_equal(after.nodes[node], before.nodes[node])


def test_of_several_node_types_the_labeled_one_is_returned():
    run = legnn.train(small_hetero(), **arguments(**QUICK))
    found = run.representations()
    assert len(found.nodes) == 40
    pd.testing.assert_frame_equal(
        run.predictions[["id", "split"]], pd.DataFrame({"id": found.node_id, "split": found.split})
    )
    np.testing.assert_allclose(classified(run, found.nodes_without_own_label), run.predict_proba(), atol=1e-6)


@pytest.mark.parametrize(("name", "kind"), [("label_propagation", "LabelPropagation"), ("pyg_gcn", "PyGGCN")])
def test_a_model_without_representations_says_so(name, kind):
    run = legnn.train(small_data(), **arguments(**QUICK, architecture=name))
    with pytest.raises(InputError, match=f"{kind} has no representations of nodes; train a model with"):
        run.representations()
