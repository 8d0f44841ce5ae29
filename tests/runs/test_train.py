"""A run is a folder: what is in it, that it can be repeated, and that it is the same every time."""

import json
import platform
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file
from tests.graphs import small_data, table_folder
from tests.named import arguments
from torch.nn.modules.module import register_module_forward_pre_hook

import legnn
from legnn.config import ResolvedSettings, SelfTrainingSettings, Settings, TrainSettings
from legnn.datasets import load
from legnn.errors import InputError
from legnn.io import read_predictions
from legnn.nn import Model, ModelSettings
from legnn.training import METRICS, Task, assign_folds, predict_without_own_label

QUICK = {"epochs": 4, "hidden": 8}
OTHERS = ["metrics.jsonl", "predictions.parquet", "result.json", "settings.yaml", "weights.safetensors"]
FILES = ["data.json", "digests.json", *OTHERS]


def same_weights(one, other) -> bool:
    first, second = load_file(one / "weights.safetensors"), load_file(other / "weights.safetensors")
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_finished_run_has_these_files_and_no_others(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    assert sorted(path.name for path in run.folder.iterdir()) == FILES


def test_the_settings_file_is_complete(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK, as_train=True), out=tmp_path / "run")
    content = yaml.safe_load((run.folder / "settings.yaml").read_text())
    kinds = {"model": ModelSettings, "train": TrainSettings, "self_training": SelfTrainingSettings}
    for section, kind in kinds.items():
        assert list(content[section]) == [field.name for field in fields(kind)]
        assert [name for name, value in content[section].items() if value is None] == []
    assert ResolvedSettings.from_yaml(run.folder / "settings.yaml") == run.settings


def test_there_is_a_line_for_every_epoch(tmp_path):
    seen = []
    run = legnn.train(small_data(), **arguments(**QUICK, as_train=True), out=tmp_path / "run", on_epoch=seen.append)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == [vars(log) for log in seen]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["training_confidence"] == pytest.approx(1 / 11)


def test_the_result_has_what_a_reader_needs(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK, seed=3), out=tmp_path / "run")
    result = json.loads((run.folder / "result.json").read_text())
    assert result == asdict(run.result)
    assert {"val", "test", "best_epoch", "epochs", "seconds", "parameters", "seed", "versions"} <= result.keys()
    assert result["val"].keys() == result["test"].keys() == METRICS.keys()
    assert 1 <= result["best_epoch"] <= result["epochs"] == 4
    assert result["seed"] == 3
    assert result["seconds"] > 0
    assert result["parameters"] == sum(p.numel() for p in run.model.parameters())
    assert result["versions"]["python"] == platform.python_version()
    assert result["versions"]["legnn"] == legnn.__version__
    assert result["versions"]["torch"] == torch.__version__


def test_the_scores_are_those_of_the_predictions(tmp_path):
    data = small_data()
    run = legnn.train(data, **arguments(**QUICK), out=tmp_path / "run")
    table = run.predictions
    for split, key in (("val", "val"), ("test", "test"), ("train", "train_masked")):
        mine = (table["split"] == split).to_numpy()
        right = table["prediction"].to_numpy()[mine] == data.y.numpy()[mine]
        assert getattr(run.result, key)["accuracy"] == pytest.approx(right.mean())


def test_a_run_without_test_nodes_has_no_test_score():
    data = small_data()
    data.test_mask = torch.zeros(40, dtype=torch.bool)
    assert legnn.train(data, **arguments(**QUICK)).result.test is None


def test_predictions_have_id_prediction_confidence_and_split(tmp_path):
    data = small_data()
    run = legnn.train(data, **arguments(**QUICK), out=tmp_path / "run")
    table = read_predictions(run.folder / "predictions.parquet")
    pd.testing.assert_frame_equal(table, run.predictions)
    assert list(table.columns) == ["id", "prediction", "confidence", "split"]
    assert table["id"].tolist() == list(range(40))
    assert table["prediction"].isin([0, 1, 2]).all()
    assert table["confidence"].between(1 / 3, 1).all()
    assert (table["split"] == "train").tolist() == data.train_mask.tolist()
    assert (table["split"] == "").sum() == int((data.y < 0).sum())


@pytest.mark.parametrize("ids", ["ints", "strings"])
@pytest.mark.parametrize("names", [[10, 20, 30], ["low", "mid", "NA"]])
def test_ids_and_labels_keep_their_kind(tmp_path, ids, names):
    data = small_data()
    given = [1000 - i for i in range(40)] if ids == "ints" else [f"node {i}" for i in range(40)]
    run = legnn.train(table_folder(tmp_path / "tables", data, given, names), **arguments(**QUICK), out=tmp_path / "run")
    table = pd.read_parquet(run.folder / "predictions.parquet")
    assert table["id"].tolist() == given
    assert set(table["prediction"].tolist()) <= set(names)
    assert type(table["prediction"].tolist()[0]) is type(names[0])


def test_training_rows_are_predicted_with_their_own_labels_hidden():
    data = small_data()
    run = legnn.train(data, **arguments(**QUICK, own_label_folds=4))
    task = Task.from_graph(load(data), torch.device("cpu"))
    x = run.model.scale(task.x)
    with torch.no_grad():
        logits = predict_without_own_label(
            lambda shown, nodes: run.model(x, task.show(shown))[nodes],
            task.train,
            assign_folds(np.arange(len(task.y)), 4),
        )
        everything = run.model(x, task.show(task.train))
    confidence = torch.softmax(logits, -1).max(-1).values
    assert run.predictions["confidence"].tolist() == confidence.tolist()
    with_own_label = torch.softmax(everything, -1).max(-1).values
    train = data.train_mask
    assert torch.equal(confidence[~train], with_own_label[~train])
    assert not torch.equal(confidence[train], with_own_label[train])


@pytest.mark.parametrize("labels", ["vanilla", "concat", "addition", "enhanced"])
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat", "gatv2", "transformer", "gin"])
def test_every_backbone_trains_with_every_label_usage(backbone, labels):
    run = legnn.train(small_data(), **arguments(**QUICK, backbone=backbone, labels=labels))
    assert run.result.epochs == 4
    assert not run.model.training


def test_the_config_of_a_run_repeats_it(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    options = {"backbone": "gat", "as_train": True, "pseudo_label_threshold": 0.3, "seed": 5, "checkpoint_seconds": 0.0}
    first = legnn.train(tables, **arguments(**options, **QUICK), out=tmp_path / "first")
    again = Settings.from_yaml(first.folder / "settings.yaml")
    second = legnn.train(again.data.source, settings=again, out=tmp_path / "second")
    assert same_weights(first.folder, second.folder)
    assert first.predictions.equals(second.predictions)
    assert (first.folder / "settings.yaml").read_text() == (second.folder / "settings.yaml").read_text()
    assert (first.folder / "metrics.jsonl").read_text() == (second.folder / "metrics.jsonl").read_text()


def test_the_seed_decides_everything_and_the_callers_random_state_nothing(tmp_path):
    first = legnn.train(small_data(), **arguments(**QUICK, seed=1), out=tmp_path / "first")
    torch.manual_seed(12345)
    torch.rand(3)
    second = legnn.train(small_data(), **arguments(**QUICK, seed=1), out=tmp_path / "second")
    other = legnn.train(small_data(), **arguments(**QUICK, seed=2), out=tmp_path / "other")
    assert same_weights(first.folder, second.folder)
    assert first.predictions.equals(second.predictions)
    assert not same_weights(first.folder, other.folder)
    assert not first.predictions["confidence"].equals(other.predictions["confidence"])


@pytest.mark.parametrize("backbone", ["gcn", "gatv2"])
def test_the_callers_random_state_is_left_as_it_was(backbone):
    before = torch.get_rng_state()
    legnn.train(small_data(), **arguments(**QUICK, backbone=backbone))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is already there; give another folder as `out`"):
        legnn.train(small_data(), **arguments(**QUICK), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(InputError, match="is already there"):
        legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "notes.txt")


def test_a_finished_run_is_not_advised_to_be_continued_and_an_unfinished_one_is(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    with pytest.raises(InputError, match="holds a finished run; give another folder as `out`, or remove this one"):
        legnn.train(small_data(), **arguments(**QUICK), out=run.folder)
    (run.folder / "result.json").unlink()
    with pytest.raises(InputError, match=r"holds a run; give another folder as `out`, or continue it with `resume="):
        legnn.train(small_data(), **arguments(**QUICK), out=run.folder)


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "empty").mkdir()
    assert legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "empty").folder == tmp_path / "empty"


def weighted(**fields):
    data = small_data(**fields)
    data.edge_weight = torch.rand(data.edge_index.size(1)) + 0.5
    return data


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (small_data(), {"alpha": 0.001}, "leaves none to predict"),
        (small_data(), {"backbone": "gat", "hidden": 9, "heads": 4}, "hidden = 9 does not divide by heads = 4"),
        (small_data(), {"backbone": "transformer", "hidden": 9, "heads": 4}, "hidden = 9 does not divide by heads = 4"),
        (small_data(), {"backbone": "gin", "normalize": "joint"}, "needs gcn, sage or gat"),
        (small_data(), {"label_features": "given"}, "needs a matrix with a row for each class"),
        (small_data(), {"label_edges": True}, "small has no label–label edges"),
        (small_data(), {"precision": "tf32", "device": "cpu"}, "`train.precision=tf32` needs a GPU"),
        (weighted(), {"backbone": "gin"}, "takes no edge weights"),
        (small_data(label_adjacency=torch.eye(3)), {"backbone": "gin"}, "takes no label–label edges"),
        *([] if torch.cuda.is_available() else [(small_data(), {"device": "cuda"}, "PyTorch sees no GPU here")]),
    ],
)
@pytest.mark.parametrize("seeds", [None, 2])
def test_what_could_only_fail_later_is_refused_before_a_folder_is_made(tmp_path, seeds, data, options, message):
    options = {**QUICK, **options}
    if seeds is not None:
        options["seeds"] = seeds
    start = legnn.train if seeds is None else legnn.train_seeds
    with pytest.raises(InputError, match=message):
        start(data, out=tmp_path / "run", **arguments(**options))
    assert list(tmp_path.iterdir()) == []


def test_vanilla_needs_no_node_to_show_a_label():
    assert legnn.train(small_data(), **arguments(**QUICK, labels="vanilla", alpha=0.001)).result.epochs == 4


def test_weights_of_edges_change_a_run():
    light = legnn.train(small_data(), **arguments(**QUICK)).predictions["confidence"]
    assert not light.equals(legnn.train(weighted(), **arguments(**QUICK)).predictions["confidence"])


def test_label_edges_change_a_run_and_can_be_switched_off():
    among = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    # a label that heard of another in the first layer tells a node in the second and a predicted one in the third
    options = {**QUICK, "layers": 3}
    without = legnn.train(small_data(), **arguments(**options)).predictions["confidence"]
    with_edges = legnn.train(small_data(label_adjacency=among), **arguments(**options))
    assert with_edges.settings.model.label_edges is True
    assert not without.equals(with_edges.predictions["confidence"])
    off = legnn.train(small_data(label_adjacency=among), **arguments(**options, label_edges=False))
    assert without.equals(off.predictions["confidence"])


def test_digits_is_learned_in_a_few_epochs(real_data):
    run = legnn.train("digits", epochs=30, hidden=32, lr=0.01)
    assert run.result.test["accuracy"] > 0.85


def test_a_run_on_a_real_citation_graph_reads_folds_and_saves(real_data, tmp_path):
    run = legnn.train("cora", out=tmp_path / "run", epochs=40, hidden=32, lr=0.01)
    assert len(run.predictions) == 2708
    assert (run.predictions["split"] == "train").sum() == 140
    assert run.result.test["accuracy"] > 0.6


def test_no_label_of_another_split_is_ever_shown():
    shown, data = [], small_data()
    hook = register_module_forward_pre_hook(
        lambda module, inputs: shown.append(inputs[1].shown) if isinstance(module, Model) else None
    )
    try:
        legnn.train(data, **arguments(**QUICK, as_train=True, pseudo_label_threshold=0.3))
    finally:
        hook.remove()
    assert len(shown) > 8
    assert any(len(nodes) for nodes in shown)
    assert all(bool(data.train_mask[nodes].all()) for nodes in shown)


def test_a_run_that_diverges_in_its_first_epoch_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="no longer a number in epoch 1"):
        legnn.train(
            small_data(), **arguments(**QUICK, lr=1e30, layers=2), out=tmp_path / "runs" / "run", preset="simple"
        )
    assert list(tmp_path.iterdir()) == []
