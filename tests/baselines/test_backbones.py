"""GCNII, APPNP and DAGNN go through runs, mini-batches, self-training and resume as the other backbones do."""

import pandas as pd
import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments
from tests.typed_graphs import small_hetero

import legnn
from legnn.errors import InputError, Interrupted

BACKBONES = ["gcnii", "appnp", "dagnn"]
QUICK = {"hidden": 8, "epochs": 4, "hops": 3, "checkpoint_seconds": 0}


@pytest.mark.parametrize("labels", ["vanilla", "enhanced"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path, backbone, labels):
    data, options = small_data(60), {"backbone": backbone, "labels": labels, **QUICK}
    whole = legnn.train(data, **arguments(**options), out=tmp_path / "whole")
    epochs = []
    with pytest.raises(Interrupted):
        legnn.train(
            data,
            **arguments(**options),
            out=tmp_path / "cut",
            on_epoch=epochs.append,
            should_stop=lambda: len(epochs) == 2,
        )
    resumed = legnn.resume(tmp_path / "cut", data)
    pd.testing.assert_frame_equal(resumed.predictions, whole.predictions, check_exact=True)
    again = legnn.Run.open(tmp_path / "whole").predict(data)
    pd.testing.assert_frame_equal(again, whole.predictions, check_exact=True)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_mini_batches_several_types_and_self_training_are_taken(backbone):
    options = {"backbone": backbone, "as_train": True, "pseudo_label_threshold": 0.4, "use_tc": False, **QUICK}
    run = legnn.train(small_hetero(), **arguments(**options, batch=8, fanout="3"))
    assert len(run.predictions) == run.predictions["id"].nunique()


@pytest.mark.parametrize("backbone", BACKBONES)
def test_representations_are_those_of_layers(backbone):
    run = legnn.train(small_data(), **arguments(**QUICK, backbone=backbone))
    if backbone == "gcnii":
        assert run.representations().nodes.shape == (40, 8)
        return
    with pytest.raises(
        InputError, match=r"has no representations of nodes; train a model with `model.architecture=legnn`"
    ):
        run.representations()


@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_preset_of_a_design_uses_no_labels(backbone):
    run = legnn.train(small_data(), preset=backbone, **arguments(**QUICK, layers=2))
    assert not run.model.uses_labels
    assert run.settings.model.residual == "none" or backbone != "gcnii"


def test_a_learned_gate_is_not_that_of_the_start():
    torch.manual_seed(0)
    run = legnn.train(small_data(), **arguments(**QUICK | {"epochs": 20}, backbone="dagnn"))
    start = legnn.train(small_data(), **arguments(**QUICK | {"epochs": 1, "lr": 1e-9}, backbone="dagnn"))
    assert (run.model.gate.weight - start.model.gate.weight).abs().max() > 1e-3
