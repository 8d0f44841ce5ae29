"""Training without validation nodes: for a fixed number of epochs, if asked."""

import pandas as pd
import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.named import arguments, named
from torch_geometric.data import Data

import legnn
from legnn.errors import InputError, Interrupted

QUICK = {"hidden": 8, "layers": 2, "fanout": "all", "lr": 0.01, "epochs": 6, "patience": 1}


def one_label_a_class() -> Data:
    y = torch.full((12,), -1)
    y[:3] = torch.arange(3)
    return Data(x=torch.eye(12), y=y, edge_index=torch.stack([torch.arange(11), torch.arange(1, 12)]))


def test_one_label_a_class_is_answered_with_what_is_possible():
    with pytest.raises(
        InputError, match=r"no split .* each of its 3 classes has one labeled node.*`data.validation=none`"
    ):
        legnn.load(one_label_a_class())


@pytest.mark.parametrize("batch", ["full", 2])
def test_without_validation_all_epochs_are_trained_and_the_last_is_kept(tmp_path, batch):
    run = legnn.train(one_label_a_class(), **arguments(**QUICK, validation="none", batch=batch), out=tmp_path / "run")
    assert (run.result.best_epoch, run.result.epochs) == (6, 6)
    assert run.result.val is None
    assert run.result.test is None
    assert any(note.code == "no-validation" for note in run.result.notes)
    assert set(run.predictions["split"]) == {"train", ""}
    assert len(legnn.Run.open(run.folder).predict(one_label_a_class())) == 12


def test_nodes_of_the_validation_split_train_where_none_is_wanted(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    plain, without = legnn.load(tables), legnn.load(tables, validation="none")
    assert torch.equal(without.train_mask, plain.train_mask | plain.val_mask)
    assert not without.val_mask.any()
    assert torch.equal(without.test_mask, plain.test_mask)


def test_a_run_without_validation_resumes_bit_for_bit(tmp_path):
    data, epochs = small_data(), []
    whole = legnn.train(data, **arguments(**QUICK, validation="none"), out=tmp_path / "whole")
    with pytest.raises(Interrupted):
        legnn.train(
            data,
            **arguments(**QUICK, validation="none"),
            out=tmp_path / "cut",
            on_epoch=epochs.append,
            should_stop=lambda: len(epochs) == 2,
        )
    again = legnn.resume(tmp_path / "cut", data)
    pd.testing.assert_frame_equal(again.predictions, whole.predictions, check_exact=True)


def test_what_chooses_by_validation_needs_it(tmp_path):
    with pytest.raises(InputError, match=r"no node of .* is for validation, by which settings are chosen"):
        legnn.auto(small_data(), settings=named(validation="none"), out=tmp_path / "auto", budget="1m")
