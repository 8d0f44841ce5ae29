"""Other models and post-processing go through the same runs, resume and predictions as ours."""

import json

import pandas as pd
import pytest
import torch
from tests.baselines.peers import OTHERS, TYPED, graph_for, is_staged, settings_of, shape_for
from tests.graphs import small_data
from tests.named import arguments, model_settings, named
from tests.typed_graphs import small_hetero

import legnn
from legnn.baselines import ARCHITECTURES, POSTPROCESS
from legnn.errors import InputError, Interrupted
from legnn.nn import DataShape, Model, StagedModel
from legnn.training import make_adam, require_staged

STAGED = [name for name in OTHERS if is_staged(name)]
WHOLE_GRAPH = [name for name in OTHERS if name not in STAGED]
QUICK = {"hidden": 8, "heads": 2, "layers": 2, "hops": 2, "trees": 3, "epochs": 6, "checkpoint_seconds": 0}


def data_for(name: str, nodes: int = 60):
    """A graph that the architecture can be trained on."""
    return small_hetero() if name in TYPED else small_data(nodes)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_a_model_with_all_that_training_needs(name):
    model = ARCHITECTURES[name](settings_of(name), shape_for(name, graph_for(name)))
    for kind in (Model, StagedModel) if isinstance(model, StagedModel) else (Model,):
        members = [*kind.__annotations__, *(member for member in vars(kind) if not member.startswith("_"))]
        assert [member for member in members if not hasattr(model, member)] == []
    grouped = [parameter for group in model.parameter_groups(0.5) for parameter in group["params"]]
    assert {id(parameter) for parameter in grouped} == {id(parameter) for parameter in model.parameters()}
    make_adam(model.parameter_groups(0.5), 0.01).step()


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_pygs_gcn_has_the_layers_and_the_norm_of_the_settings(norm):
    model = ARCHITECTURES["pyg_gcn"](
        model_settings(hidden=8, layers=3, norm=norm, dropout=0.3), DataShape(5, 4, types=2)
    )
    assert [tuple(conv.lin.weight.shape) for conv in model.gcn.convs] == [(8, 10), (8, 8), (4, 8)]
    assert type(model.gcn.norms[0]).__name__ == {"none": "Identity", "batch": "BatchNorm", "layer": "LayerNorm"}[norm]
    assert model.gcn.dropout.p == 0.3
    decay = {id(p): group["weight_decay"] for group in model.parameter_groups(0.5) for p in group["params"]}
    assert [decay[id(conv.lin.weight)] for conv in model.gcn.convs] == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("postprocess", POSTPROCESS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_saved_run_predicts_what_it_predicted(tmp_path, name, postprocess):
    data = data_for(name)
    run = legnn.train(data, **arguments(**QUICK, architecture=name, postprocess=postprocess), out=tmp_path / "run")
    assert run.settings.model.architecture == name
    again = legnn.Run.open(tmp_path / "run").predict(data)
    pd.testing.assert_frame_equal(again, run.predictions, check_exact=True)
    assert run.result.parameters == sum(p.numel() for p in run.model.parameters())
    assert run.result.epochs == (6 if run.result.parameters else 1)


def assert_resumed_bit_for_bit(folder, name: str, **options) -> None:
    data = data_for(name)
    whole = legnn.train(data, **arguments(**options, architecture=name), out=folder / "whole")
    epochs = []
    stops = {
        "on_epoch": epochs.append,
        "should_stop": lambda: len(epochs) == min(2, whole.result.epochs),
    }
    with pytest.raises(Interrupted):
        legnn.train(data, **arguments(**stops, **options, architecture=name), out=folder / "cut")
    resumed = legnn.resume(folder / "cut", data)
    pd.testing.assert_frame_equal(resumed.predictions, whole.predictions, check_exact=True)
    weights = zip(whole.model.state_dict().items(), resumed.model.state_dict().items(), strict=True)
    assert all(one[0] == other[0] and torch.equal(one[1], other[1]) for one, other in weights)
    logs = [[json.loads(line) for line in (folder / run / "metrics.jsonl").open()] for run in ("whole", "cut")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("name", OTHERS)
def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path, name):
    assert_resumed_bit_for_bit(tmp_path, name, **QUICK, dropout=0.3, input_dropout=0.2)


@pytest.mark.parametrize("name", STAGED)
def test_a_resumed_run_of_mini_batches_is_the_one_that_was_not_interrupted(tmp_path, name):
    assert_resumed_bit_for_bit(
        tmp_path, name, **QUICK, batch=8, fanout="3", dropout=0.3, as_train=True, pseudo_label_threshold=0.4
    )


@pytest.mark.parametrize("name", OTHERS)
def test_an_interrupted_run_is_finished_and_a_finished_one_is_read(tmp_path, name):
    run = legnn.train(data_for(name, 40), **arguments(**QUICK, architecture=name), out=tmp_path / "run")
    pd.testing.assert_frame_equal(legnn.resume(tmp_path / "run").predictions, run.predictions, check_exact=True)


@pytest.mark.parametrize("name", OTHERS)
def test_several_node_types_and_self_training_are_taken(name):
    run = legnn.train(
        small_hetero(),
        **arguments(**QUICK, architecture=name, as_train=True, pseudo_label_threshold=0.4, use_tc=False),
    )
    assert len(run.predictions) == run.predictions["id"].nunique()


@pytest.mark.parametrize("name", STAGED)
def test_mini_batches_of_several_node_types_are_taken_and_predicted_again_alike(name):
    data = small_hetero()
    run = legnn.train(data, **arguments(**QUICK, architecture=name, batch=8, fanout="2"))
    again = run.predict(data)
    pd.testing.assert_frame_equal(again, run.predictions)


@pytest.mark.parametrize("name", WHOLE_GRAPH)
def test_a_model_that_is_not_staged_is_refused_for_mini_batches_before_a_folder_is_made(tmp_path, name):
    message = r"trains on the whole graph at once, not on mini-batches: .+; give `train.batch=full`"
    with pytest.raises(InputError, match=message):
        legnn.train(data_for(name), **arguments(**QUICK, architecture=name, batch=8, fanout="3"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    model = ARCHITECTURES[name](settings_of(name), shape_for(name, graph_for(name)))
    with pytest.raises(InputError, match=r"give `train.batch=full`"):
        require_staged(model)


@pytest.mark.parametrize("name", TYPED)
def test_a_design_for_several_node_types_refuses_a_graph_of_one_before_a_folder_is_made(tmp_path, name):
    with pytest.raises(InputError, match="several node types"):
        legnn.train(small_data(), **arguments(**QUICK, architecture=name), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_label_propagation_learns_nothing_and_predicts_well(tmp_path):
    logs = []
    run = legnn.train("digits", settings=named(architecture="label_propagation"), on_epoch=logs.append)
    assert [log.epoch for log in logs] == [1]
    assert run.result.parameters == 0
    assert run.result.test["accuracy"] > 0.9


def test_pygs_gcn_learns():
    run = legnn.train(small_data(120), settings=named(architecture="pyg_gcn", epochs=60, hidden=16, lr=0.02))
    assert run.result.test["accuracy"] > 0.6


def test_correct_and_smooth_changes_what_a_model_without_labels_predicts():
    plain, smooth = (
        legnn.train("digits", settings=named(architecture="pyg_gcn", epochs=5, postprocess=name)).result
        for name in POSTPROCESS
    )
    assert smooth.test["accuracy"] > plain.test["accuracy"]
