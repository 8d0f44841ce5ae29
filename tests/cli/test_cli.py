"""The command line: what it prints, what it leaves behind, and how it answers a mistake."""

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tests.commands import run_command
from tests.graphs import small_data, table_folder
from tests.network import no_requests
from tests.typed_graphs import small_hetero, typed_folder, with_tags
from typer.testing import CliRunner

import legnn
from legnn import cli
from legnn.config import SelfTrainingSettings
from legnn.datasets import CATALOG
from legnn.io import read_predictions
from legnn.runs import Member, RunFolder, write_ensemble

QUICK = ("--epochs", "3", "--hidden", "8")


class Done:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run `legnn` as a shell would, in an empty folder, without the seconds that a new process takes to begin."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = run_command(*arguments)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def refused(done: Done, *words: str) -> None:
    """Exit code 2, one line on standard error that says these words, and nothing on standard output."""
    assert done.code == 2, (done.out, done.err)
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("legnn: ")
    for word in words:
        assert word in done.err


@pytest.fixture
def tables(tmp_path) -> Path:
    return table_folder(tmp_path / "tables", small_data())


def same_weights(first: str, second: str) -> bool:
    """Whether two runs, which may have read their data elsewhere, have the same weights to the bit."""
    weights, others = (load_file(Path(run) / "weights.safetensors") for run in (first, second))
    return weights.keys() == others.keys() and all(
        torch.equal(weight, others[name]) for name, weight in weights.items()
    )


def edit(path: Path, change) -> None:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    change(table).to_csv(path, index=False)


# --- what works ------------------------------------------------------------------------------------------------------


def test_cross_fitting_prints_the_scores_of_training_nodes_and_is_resumed(command, tables):
    done = command("train", str(tables), *QUICK, "--cross-fit", "2", "--out", "run")
    assert done.code == 0, done.err
    train = json.loads(Path("run/summary.json").read_text())["train_cross_fitted"]
    assert re.search(rf"accuracy .*{train['accuracy']:.4f}", done.out)
    assert command("train", "--resume", "run").out == done.out
    refused(command("train", str(tables), "--cross-fit", "2", "--seeds", "2"), "not both")
    refused(command("train", str(tables), "--cross-fit", "1"), "at least 2 folds")


def test_train_prints_a_table_and_the_folder(command):
    done = command("train", "digits", *QUICK, "--out", "run")
    assert done.code == 0, done.err
    result = json.loads(Path("run/result.json").read_text())
    for name, title in {"accuracy": "accuracy", "macro_f1": "macro-F1", "ece": "calibration error"}.items():
        values = " .*".join(f"{result[split][name]:.4f}" for split in ("test", "val", "train_masked"))
        assert re.search(rf"{title} .*{values}", done.out), name
    assert f"best epoch {result['best_epoch']} of 3, {result['parameters']:,} parameters" in done.out
    assert done.out.endswith("\nrun\n")
    assert done.err == ""


def test_without_out_the_folder_is_named_after_the_run_and_numbered(command, tables):
    assert command("train", tables, *QUICK).out.endswith("\nruns/tables\n")
    assert command("train", tables, *QUICK).out.endswith("\nruns/tables-2\n")
    options = ("--as-train", "--labels", "concat", "--backbone", "sage")
    assert command("train", tables, *QUICK, *options).out.endswith("\nruns/tables-sage-concat-as-train\n")


def test_options_become_settings(command, tables):
    options = (
        "--backbone",
        "gat",
        "--labels",
        "addition",
        "--set",
        "model.attention.heads=2",
        "--set",
        "model.residual=identity",
        "--set",
        "model.norm=layer",
    )
    more = (
        "--as-train",
        "--set",
        "self_training.pseudo_label_threshold=0.4",
        "--set",
        "self_training.use_tc=false",
        "--set",
        "train.selection=false",
        "--seed",
        "7",
        "--set",
        "data.self_loops=false",
    )
    more = (*more, "--device", "cpu", "--set", "train.precision=fp32")
    done = command("train", tables, *QUICK, *options, *more, "--out", "run")
    assert done.code == 0, done.err
    settings = RunFolder.open(Path("run")).settings
    model, train = settings.model, settings.train
    assert (model.backbone, model.labels, model.attention.heads, model.residual, model.norm) == (
        "gat",
        "addition",
        2,
        "identity",
        "layer",
    )
    assert (train.selection, train.seed, train.epochs) == (False, 7, 3)
    assert (train.device, train.precision) == ("cpu", "fp32")
    assert settings.self_training == SelfTrainingSettings(as_train=True, pseudo_label_threshold=0.4, use_tc=False)
    assert settings.data.self_loops is False


def test_config_repeats_a_run_and_options_beside_it_win(command, tables):
    command("train", tables, *QUICK, "--backbone", "sage", "--out", "first")
    assert command("train", "--config", "first/settings.yaml", "--out", "second").code == 0
    assert Path("first/predictions.parquet").read_bytes() == Path("second/predictions.parquet").read_bytes()
    assert Path("first/weights.safetensors").read_bytes() == Path("second/weights.safetensors").read_bytes()
    assert command("train", "--config", "first/settings.yaml", "--seed", "9", "--out", "third").code == 0
    settings = RunFolder.open(Path("third")).settings
    assert (settings.train.seed, settings.model.backbone) == (9, "sage")


def test_seeds_print_mean_and_deviation(command, tables):
    done = command("train", tables, *QUICK, "--seeds", "2", "--out", "runs")
    assert done.code == 0, done.err
    summary = json.loads(Path("runs/summary.json").read_text())
    accuracy = summary["test"]["accuracy"]
    assert f"{accuracy['mean']:.4f} ± {accuracy['std']:.4f}" in done.out
    again = command("train", "--resume", "runs")
    assert again.code == 0
    assert f"{accuracy['mean']:.4f} ± {accuracy['std']:.4f}" in again.out


def test_resume_of_a_finished_run_shows_its_result(command, tables):
    first = command("train", tables, *QUICK, "--out", "run")
    assert command("train", "--resume", "run").out == first.out


def test_predict_writes_a_table_and_says_where(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    before = Path("run/predictions.parquet").read_bytes()
    assert command("predict", "run").out.endswith("\nrun/predictions.parquet\n")
    assert Path("run/predictions.parquet").read_bytes() == before
    done = command("predict", "run", "--data", tables, "--out", "p.csv")
    assert done.code == 0, done.err
    assert "40 predictions" in done.out
    assert read_predictions("p.csv")["id"].tolist() == [f"n{i}" for i in range(40)]
    assert command("predict", "run", "--data", tables).out.endswith("\npredictions.parquet\n")


@pytest.fixture
def ensemble(command, tables):
    """The folder of an ensemble of two runs, as a user would name it."""
    command("train", tables, *QUICK, "--out", "auto/runs/gcn")
    command("train", tables, *QUICK, "--set", "model.architecture=mlp", "--out", "auto/runs/mlp")
    common = {"weight": 0.5, "propagation_steps": 50, "propagation_alpha": 0.9}
    members = [Member(folder=f"runs/{name}", **common) for name in ("gcn", "mlp")]
    write_ensemble("auto", members, 1.0, seconds=1.0)
    return "auto"


def test_predict_adds_labels_and_probabilities_where_asked(command, tables):
    command("train", tables, "--out", "run", *QUICK)
    assert command("predict", "run", "--top", "2", "--out", "top.csv").code == 0
    top = pd.read_csv("top.csv")
    assert top.columns.tolist()[4:] == ["label", "prediction_2", "confidence_2"]
    assert command("predict", "run", "--probabilities", "--out", "all.parquet").code == 0
    every = pd.read_parquet("all.parquet")
    assert every.columns.tolist()[4:] == ["label", "p_class 0", "p_class 1", "p_class 2"]
    known = every["split"] != ""
    assert every["label"].notna().tolist() == known.tolist()
    assert read_predictions("run/predictions.parquet").columns.tolist() == ["id", "prediction", "confidence", "split"]
    refused(command("predict", "run", "--top", "2", "--probabilities"), "`top` adds", "give one of the two")


def test_an_ensemble_predicts_like_a_run(command, tables, ensemble):
    before = Path("auto/predictions.parquet").read_bytes()
    done = command("predict", ensemble)
    assert done.code == 0, done.err
    assert done.out.endswith("\nauto/predictions.parquet\n")
    assert Path("auto/predictions.parquet").read_bytes() == before
    assert "40 predictions" in command("predict", ensemble, "--data", tables, "--out", "p.csv").out
    refused(
        command("predict", ensemble, "--set", "model.postprocess=correct_and_smooth"),
        "auto is an ensemble; its members have their own post-processing, leave model.postprocess out",
    )


def test_the_runs_of_several_seeds_are_averaged(command, tables):
    command("train", tables, *QUICK, "--seeds", "2", "--out", "seeds")
    done = command("predict", "seeds", "--out", "p.csv")
    assert done.code == 0, done.err
    runs = [legnn.Run.open(f"seeds/seed-{k}") for k in (0, 1)]
    expected = sum(run.predict_proba() for run in runs).max(axis=1) / 2
    np.testing.assert_allclose(read_predictions("p.csv")["confidence"], expected, atol=1e-6)


@pytest.mark.parametrize("name", ["predict", "evaluate"])
def test_a_damaged_or_missing_member_is_one_sentence(command, ensemble, name):
    weights = Path("auto/runs/gcn/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:-5])
    refused(command(name, ensemble), "auto/runs/gcn/weights.safetensors is damaged")
    shutil.rmtree("auto/runs/mlp")
    shutil.rmtree("auto/runs/gcn")
    refused(command(name, ensemble), "there is no run folder auto/runs/gcn")


def test_evaluate_prints_scores_of_splits_and_classes_and_writes_all_of_it(command, ensemble):
    done = command("evaluate", ensemble, "--out", "e.json")
    assert done.code == 0, done.err
    found, result = json.loads(Path("e.json").read_text()), json.loads(Path("auto/result.json").read_text())
    for split in ("val", "test", "train_masked"):
        assert found[split] == result[split]
        assert f"{result[split]['accuracy']:.4f}" in done.out
    for one in found["classes"]:
        words = rf"{one['name']} +{one['precision']:.4f} +{one['recall']:.4f} +{one['f1']:.4f} +{one['support']}"
        assert re.search(words, done.out), words
    for k, row in enumerate(found["confusion"]):
        assert re.search(rf"{k + 1} class {k} +{' +'.join(map(str, row))} *\n", done.out), row
    assert f"{found['scores']['ece']:.4f}" in done.out
    assert done.out.endswith("\ne.json\n")


def test_evaluate_of_a_run_gives_its_scores(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    done = command("evaluate", "run", "--data", tables, "--set", "train.device=cpu")
    assert done.code == 0, done.err
    assert f"{legnn.Run.open('run').result.test['accuracy']:.4f}" in done.out
    refused(command("evaluate", "run", "--out", "e.txt"), "an evaluation goes to a .json file, not to e.txt")
    refused(command("evaluate", "none"), "there is no run folder none")


def test_a_confusion_that_does_not_fit_is_cut_to_the_largest_classes(command, tmp_path):
    wide = table_folder(tmp_path / "wide", small_data(nodes=240, classes=24, channels=24))
    command("train", wide, *QUICK, "--out", "run")
    # the width of a terminal is known from the first line that a process prints
    evaluate = [sys.executable, "-m", "legnn", "evaluate", "run", "--out", "e.json"]
    done = subprocess.run(evaluate, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    cut = re.search(r"and (\d+) smaller classes; --out FILE.json has all", done.stdout)
    assert cut is not None
    header = re.search(r"^ +(1 +2 .*) others *$", done.stdout, flags=re.MULTILINE)
    assert header is not None
    assert len(header[1].split()) + int(cut[1]) == 24
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_data_list_shows_one(command, real_data):
    done = command("data", "list", "cora")
    assert done.code == 0, done.err
    for word in ("2,708", "1,433", "7", "0.8100"):
        assert word in done.out


def test_data_list_shows_the_homophily_with_edges_between_classes(command, real_data):
    done = command("data", "list", "cora", "--set", "data.cross_label_edges=10556")
    assert done.code == 0
    assert "21,112" in done.out
    assert "0.4050" in done.out  # half of 0.8100
    assert "note: 10,556 edges between nodes of different classes were added" in done.out


def test_data_list_shows_a_folder_of_tables(command, tables):
    done = command("data", "list", tables)
    assert done.code == 0, done.err
    assert "tables" in done.out
    assert "40" in done.out


def test_prepare_writes_a_folder_that_the_other_commands_take(command, tables):
    done = command("data", "prepare", tables, "--out", "prepared", "--set", "data.undirected=false")
    assert done.code == 0, done.err
    assert "tables" in done.out
    assert done.out.rstrip().endswith("prepared")
    assert json.loads(Path("prepared/graph.json").read_text())["settings"]["undirected"] is False
    assert command("data", "list", "prepared").out == command("data", "list", tables).out
    assert command("train", "prepared", *QUICK, "--out", "mapped").code == 0
    assert command("train", tables, "--set", "data.undirected=false", *QUICK, "--out", "plain").code == 0
    assert Path("mapped/metrics.jsonl").read_bytes() == Path("plain/metrics.jsonl").read_bytes()
    assert same_weights("mapped", "plain")
    assert command("predict", "mapped").code == 0
    assert command("train", "--resume", "mapped").code == 0


def test_prepare_takes_several_node_types(command, tmp_path):
    folder = typed_folder(tmp_path / "typed", with_tags(small_hetero()))
    options = ("--set", "data.type_channels=6", "--set", "data.missing_features=metapath2vec")
    assert command("data", "prepare", folder, "--out", "prepared", *options).code == 0
    said = json.loads(Path("prepared/graph.json").read_text())
    assert (said["settings"]["type_channels"], said["settings"]["missing_features"]) == (6, "metapath2vec")
    assert said["type_names"] == ["author", "paper", "tag"]
    assert command("train", "prepared", *QUICK, "--out", "mapped").code == 0
    assert command("train", folder, *options, *QUICK, "--out", "plain").code == 0
    assert same_weights("mapped", "plain")


def test_prepare_answers_a_mistake_with_one_sentence_and_leaves_nothing_behind(command, tables):
    refused(command("data", "prepare", "nowhere", "--out", "here"), "unknown data set 'nowhere'")
    refused(
        command("data", "prepare", tables, "--out", "here", "--set", "data.label_column=topic"),
        "has no column 'topic'",
    )
    assert not Path("here").exists()
    assert list(Path().iterdir()) == []
    refused(command("data", "prepare", "digits", "--out", tables), "is already there; give another")
    command("data", "prepare", tables, "--out", "here")
    Path("here/col.npy").unlink()
    refused(command("train", "here"), "here has no col.npy")
    Path("here/graph.json").write_text("{}")
    refused(command("data", "list", "here"), "of version None")


def test_data_list_names_all_data_sets_and_folders_and_downloads_nothing(command, monkeypatch, tmp_path, tables):
    monkeypatch.setenv("LEGNN_DATA", str(tables.parent))
    with no_requests():
        done = command("data", "list")
    assert done.code == 0, done.err
    assert all(name in done.out for name in (*CATALOG, tables.name))


def test_homophily_of_no_edges_is_none(command, tables):
    nodes = pd.read_csv(tables / "nodes.csv", dtype=str, keep_default_na=False)
    nodes["label"] = [f"class {i % 2}" if i in (0, 1, 2, 3) else "" for i in range(len(nodes))]
    nodes["split"] = ["train", "train", "val", "val", *[""] * (len(nodes) - 4)]
    nodes.to_csv(tables / "nodes.csv", index=False)
    (tables / "edges.csv").write_text("source,target\n" + "".join(f"{nodes['id'][0]},{i}\n" for i in nodes["id"][10:]))
    done = command("data", "list", tables)
    assert "none" in done.out
    assert "nan" not in done.out


def test_control_characters_in_data_do_not_reach_the_terminal(command, tables):
    hostile = "class \x1b]0;title\x07\x1b[2J\u202e"
    edit(tables / "nodes.csv", lambda t: t.assign(label=t["label"].replace("class 1", hostile)))
    edit(tables / "nodes.csv", lambda t: t.assign(split=t["split"].mask(t["label"] == "class 2", "test")))
    refused(command("train", tables, *QUICK, "--out", "run"), "no training node of class 'class 2'")
    edit(tables / "nodes.csv", lambda t: t.assign(label=t["label"].replace("class 2", "class 0")))
    assert command("train", tables, *QUICK, "--out", "run").code == 0
    done = command("evaluate", "run")
    assert "class \\x1b]0;title" in done.out
    assert not [c for c in done.out if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]


def test_a_bracket_in_a_name_is_printed_as_it_is(command, tables):
    place = "run [red] :car:"
    assert command("train", tables, *QUICK, "--out", place).out.endswith(f"\n{place}\n")


def test_help_shows_defaults():
    done = CliRunner().invoke(
        cli.make_app(["train"]), ["train", "--help"], env={"COLUMNS": "250", "TERM": "dumb", "NO_COLOR": "1"}
    )
    assert done.exit_code == 0
    for default in ("[digits]", "[gat]", "[512]", "[runs/…]", "[recommended]"):
        assert default in done.output


# --- what does not ---------------------------------------------------------------------------------------------------


def bad_edge(tables: Path) -> None:
    edit(tables / "edges.csv", lambda t: pd.concat([t, pd.DataFrame({"source": ["n0"], "target": ["nobody"]})]))


def same_id(tables: Path) -> None:
    edit(tables / "nodes.csv", lambda t: t.assign(id=["n1", *t["id"][1:]]))


def bad_feature(value: str):
    def change(tables: Path) -> None:
        edit(tables / "nodes.csv", lambda t: t.assign(f1=[*t["f1"][:3], value, value, *t["f1"][5:]]))

    return change


def set_column(name: str, make):
    return lambda tables: edit(tables / "nodes.csv", lambda t: t.assign(**{name: make(t)}))


def no_edges(tables: Path) -> None:
    (tables / "edges.csv").write_text("source,target\n")


def no_nodes(tables: Path) -> None:
    (tables / "nodes.csv").write_text("id,label,split,f0\n")


def short_features(tables: Path) -> None:
    np.save(tables / "features.npy", np.zeros((39, 4), dtype=np.float32))


def only_in_test(t: pd.DataFrame) -> list[str]:
    return ["unseen" if split == "test" else label for label, split in zip(t["label"], t["split"], strict=True)]


BAD_DATA = [
    (bad_edge, ["edges.csv", "'target'", "'nobody'", "every end of an edge must be an id of a node"]),
    (same_id, ["nodes.csv", "'n1'", "twice", "line 2 and line 3", "ids must differ"]),
    (bad_feature("inf"), ["2 features", "node 'n3'", "column 'f1'", "must be a finite number"]),
    (
        set_column("when", lambda t: ["2020-01-01"] * (len(t) - 1) + ["2020-13-01"]),
        ["nodes.csv", "'when'", "'2020-13-01'", "write a date such as 2024-05-31", "1 such cell"],
    ),
    (
        set_column("label", lambda t: [f"{i}.5" for i in range(len(t))]),
        ["column 'label'", "looks like regression", "40 different numbers", "give classes, or a column of text"],
    ),
    (bad_feature("much"), ["nodes.csv", "line 5", "'f1'", "'much'", "2 such cells"]),
    (
        set_column("split", lambda t: t["split"].replace("train", "")),
        ["for training", "mark some labeled nodes 'train'"],
    ),
    (set_column("label", lambda t: ["only" if x else "" for x in t["label"]]), ["'only'", "two classes or more"]),
    (set_column("label", lambda t: [""] * len(t)), ["no node of", "has a label"]),
    (set_column("label", only_in_test), ["test nodes but no training node of class 'unseen'"]),
    (set_column("split", lambda t: t["split"].replace("val", "vall")), ["nodes.csv", "'vall'", "did you mean 'val'"]),
    (
        lambda tables: edit(tables / "nodes.csv", lambda t: t.rename(columns={"label": "lable"})),
        ["no column 'label'", "'lable'"],
    ),
    (no_edges, ["edges.csv", "at least one edge"]),
    (no_nodes, ["nodes.csv", "has no rows"]),
    (short_features, ["features.npy", "39 rows", "40"]),
    (lambda tables: (tables / "edges.csv").unlink(), ["no edges.parquet and no edges.csv"]),
]


@pytest.mark.parametrize(("damage", "words"), BAD_DATA)
@pytest.mark.parametrize("seeds", [(), ("--seeds", "2")])
def test_bad_data_get_one_sentence_and_leave_nothing_behind(command, tables, damage, words, seeds):
    damage(tables)
    refused(command("train", tables, *QUICK, *seeds, "--out", "run"), *words)
    refused(command("train", tables, *QUICK, *seeds), *words)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "corra"], ["unknown data set 'corra'", "did you mean 'cora'"]),
        (
            ["train", "digits", "--backbone", "gcnn"],
            ["model.backbone must be one of", "did you mean 'gcn'", "(--backbone)"],
        ),
        (
            ["train", "digits", "--set", "self_training.pseudo_label_threshold=0.5"],
            ["belongs to AS-Train", "(--as-train)"],
        ),
        (["train", "digits", "--lr", "-1"], ["train.lr must be above 0", "(--lr)"]),
        (["train", "digits", "--set", "train.patience=0"], ["at least 1, got 0 (--set train.patience=VALUE)"]),
        (["resume", "runs/digits"], ["there is no command resume", "legnn train --resume FOLDER"]),
        (["train", "digits", "--heads", "4"], ["there is no option --heads; give --set model.attention.heads=VALUE"]),
        (["train", "digits", "--set", "heads=4"], ["no setting 'heads' (did you mean 'model.attention.heads'?)"]),
        (["train", "digits", "--set", "heads"], ["--set needs NAME=VALUE"]),
        (["predict", "nowhere", "--device", "cpu"], ["there is no option --device; give --set train.device=VALUE"]),
        (["predict", "nowhere", "--set", "model.hidden=8"], ["this command does not use model.hidden"]),
        (["train", "digits", "--hidden", "wide"], ["hidden must be a whole number, got 'wide'"]),
        (
            ["train", "digits", "--set", "model.norm=bach"],
            ["norm must be one of none, batch, layer", "did you mean 'batch'"],
        ),
        (
            ["train", "digits", "--preset", "papr"],
            ["preset must be one of recommended, simple, paper", "did you mean 'paper'"],
        ),
        (["predict", "nowhere", "--set", "train.device=tpu"], ["train.device must be one of auto, cpu, cuda"]),
        (["train", "digits", "--set", "train.alpha=1.5"], ["alpha must be above 0 and at most 1"]),
        (["train", "digits", "--set", "train.alpha=0.0001"], ["leaves none to predict"]),
        (
            ["train", "digits", "--backbone", "gatv2", "--hidden", "30", "--set", "model.attention.heads=4"],
            ["hidden = 30", "heads = 4"],
        ),
        (["train", "digits", "--backbone", "gin", "--set", "model.normalize=joint"], ["needs gcn, sage or gat"]),
        (["train", "digits", "--set", "model.label_features=given"], ["a row for each class"]),
        (
            ["train", "digits", "--device", "cpu", "--set", "train.precision=tf32"],
            ["tf32` needs a GPU", "give fp32 or auto"],
        ),
        (["train", "digits", "--seeds", "0"], ["seeds must be at least 1"]),
        (["train", "digits", "--seeds", "2", "--seed", "1"], ["--seed for one run or --seeds for several"]),
        (["train", "digits", "--resume", "x"], ["--resume continues a run as it was started"]),
        (["train", "--resume", "nowhere"], ["there is no run folder nowhere"]),
        (["train", "--config", "nowhere.yaml"], ["cannot read the settings file nowhere.yaml"]),
        (["train", "digits", "--text", "words"], ["leave text out"]),
        (["predict", "nowhere"], ["there is no run folder nowhere"]),
        (["settings", "nosuch"], ["there is no setting 'nosuch'"]),
        (["data", "list", "nosuch"], ["unknown data set 'nosuch'"]),
    ],
)
def test_a_mistaken_command_gets_one_sentence_and_leaves_nothing_behind(command, arguments, words):
    refused(command(*arguments), *words)
    assert list(Path().iterdir()) == []


def test_a_settings_file_with_an_unknown_key_is_refused(command):
    Path("settings.yaml").write_text("model:\n  hiden: 8\n")
    done = command("train", "digits", "--config", "settings.yaml", "--out", "run")
    refused(done, "settings.yaml", "'model.hiden'", "did you mean 'model.hidden'")
    assert [path.name for path in Path().iterdir()] == ["settings.yaml"]


def test_a_folder_that_is_there_is_refused(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    refused(command("train", tables, *QUICK, "--out", "run"), "run holds a finished run; give another folder as `out`")
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before


def test_a_damaged_run_is_refused(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    weights = Path("run/weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:-10])
    refused(command("predict", "run", "--out", "p.csv"), "weights.safetensors", "damaged", "restore it from a copy")
    assert not Path("p.csv").exists()


def test_a_truncated_checkpoint_is_refused(command, tables):
    with pytest.raises(legnn.Interrupted):
        legnn.train(tables, out="run", epochs=3, hidden=8, should_stop=lambda: True)
    checkpoint = Path("run/checkpoint.safetensors")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    refused(command("train", "--resume", "run"), "checkpoint.safetensors", "damaged")


def test_a_run_of_other_data_is_refused(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    refused(command("predict", "run", "--data", "digits"), "the feature columns of digits are not those of the run")
    with pytest.raises(legnn.Interrupted):
        legnn.train(tables, out="cut", epochs=3, hidden=8, should_stop=lambda: True)
    edit(tables / "nodes.csv", lambda t: t.assign(f0=["7", *t["f0"][1:]]))
    refused(command("train", "--resume", "cut"), "cut is a run on other data", "restore the data")
    refused(command("predict", "run"), "run is a run on other data", "as `data`")


def test_a_run_whose_data_are_gone_says_so(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    shutil.rmtree(tables)
    refused(command("predict", "run"), f"there is no folder {tables}")


def test_a_run_is_predicted_with_another_postprocess_beside_its_own_predictions(command, tables):
    assert command("train", tables, "--out", "run", *QUICK).code == 0
    before = Path("run/predictions.parquet").read_bytes()
    done = command(
        "predict", "run", "--set", "model.postprocess=correct_and_smooth", "--set", "model.label_propagation.alpha=0.8"
    )
    assert done.code == 0
    assert Path("run/predictions.parquet").read_bytes() == before
    assert Path("predictions.parquet").read_bytes() != before
    assert command("predict", "run", "--set", "model.postprocess=smooth").code == 2


def test_predictions_go_to_a_table_or_nowhere(command, tables):
    command("train", tables, *QUICK, "--out", "run")
    refused(command("predict", "run", "--out", "p.txt"), ".parquet or a .csv file, not to p.txt")
    assert [path.name for path in Path().iterdir()] == ["run"]


# --- as a process ----------------------------------------------------------------------------------------------------


def as_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    source = str(Path(legnn.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "legnn", *arguments], cwd=cwd, env=environment, capture_output=True, timeout=120
    )


@pytest.mark.slow
def test_piped_output_has_no_progress_and_no_control_characters(tmp_path):
    done = as_process("train", "digits", *QUICK, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode()
    assert [character for character in text if ord(character) < 32 and character != "\n"] == []
    assert "accuracy" in text
    assert text.endswith("\nrun\n")


def test_a_mistake_in_a_real_process_is_one_line_and_code_2(tmp_path, tables):
    bad_edge(tables)
    done = as_process("train", str(tables), "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_reproduce_lists_every_table_and_figure(command):
    from legnn.experiments import EXPERIMENTS

    done = command("reproduce")
    assert done.code == 0
    assert all(name in done.out for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["label-usages"], "did you mean 'label-usage'"),
        (["label-usage", "--data", "coar"], "did you mean 'cora'"),
        (["label-usage", "--data", "/nowhere"], "there is no folder /nowhere"),
        (["label-usage", "--data", "digits", "--backbone", "gnc"], "backbone must be one of gcn"),
        (["label-usage", "--data", "digits", "--seeds", "0"], "seeds must be at least 1"),
        (["label-usage", "--data", "digits", "--trials", "99"], "trials must be from 1 to"),
        (["label-usage", "--data", "digits", "--jobs", "0"], "jobs must be at least 1"),
        (["label-usage", "--data", "digits", "--preset", "papr"], "did you mean 'paper'"),
        (
            ["label-usage", "--data", "digits", "--set", "model.labels=concat"],
            "varies model.labels itself; leave model.labels out",
        ),
        (["label-usage", "--data", "digits", "--set", "train.lr=fast"], "lr must be a number"),
    ],
)
def test_a_mistake_in_reproduce_is_one_sentence_before_anything_is_trained(command, words, message):
    done = command("reproduce", *words)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not Path("runs").exists()


def test_runs_that_fail_are_counted_and_the_others_kept(command, tmp_path):
    folder = table_folder(tmp_path / "small", small_data())
    (folder / "edges.csv").write_text("source,target\nn0,nobody\n")
    done = command(
        "reproduce",
        "label-usage",
        "--data",
        folder,
        "--backbone",
        "gcn",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--set",
        "train.epochs=3",
    )
    assert done.code == 2
    lines = done.err.strip().splitlines()
    assert "4 runs: " in lines[-2]
    assert "nobody" in lines[-2]
    assert "4 of 4 runs could not be trained" in lines[-1]
