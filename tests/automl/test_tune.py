"""Tuning: chosen on validation, kept in a folder, continued after any interruption."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.backbones import registered
from tests.graphs import small_data
from tests.named import named
from tests.runs.small_runs import assert_same_run
from torch_geometric.nn import SAGEConv

from legnn.automl.study import WARMUP_EPOCHS, Tuned
from legnn.automl.tune import tune
from legnn.config import GraphFacts, ResolvedSettings, Settings
from legnn.errors import FolderInUse, InputError, Interrupted
from legnn.nn import lifted
from legnn.runs import Run, train

pytest.importorskip("optuna")

QUICK = {"architecture": "mlp", "hidden": 8, "epochs": 3, "as_train": False}
"""What is fixed, for the sake of time."""
FACTS = GraphFacts(num_train=1000, num_classes=10, counts_features=False, has_label_edges=False)


def test_the_best_is_at_least_as_good_on_validation_as_the_settings_of_the_preset(tmp_path):
    found = tune(small_data(), settings=named(**QUICK), trials=4, out=tmp_path)
    first = found.trials[0]
    preset = Settings(values=named(**QUICK)).resolve(FACTS)
    assert first.chosen["norm"] in ("none", "batch")
    assert first.chosen["dropout"] == preset.model.dropout
    assert found.best.val >= first.val
    assert found.best.val == found.result.val["accuracy"] == max(one.val for one in found.trials if one.val is not None)


def test_every_trial_is_a_run_and_the_tables_say_what_it_came_to(tmp_path):
    found = tune(small_data(), settings=named(**QUICK), trials=3, out=tmp_path)
    table = pd.read_csv(tmp_path / "trials.csv")
    assert list(table["trial"]) == [0, 1, 2]
    for one in found.trials:
        run = Run.open(tmp_path / "trials" / str(one.number))
        assert run.result.val["accuracy"] == one.val
        assert run.settings.train.lr == table["lr"][one.number] == one.chosen["lr"]


def test_best_yaml_repeats_the_best_trial(tmp_path):
    found = tune(small_data(), settings=named(**QUICK), trials=3, out=tmp_path)
    assert ResolvedSettings.from_yaml(tmp_path / "best.yaml") == found.settings
    again = train(small_data(), settings=Settings.from_yaml(tmp_path / "best.yaml"))
    assert again.result.val == found.result.val


def test_a_second_call_trains_nothing_when_the_trials_are_complete(tmp_path):
    first = tune(small_data(), settings=named(**QUICK), trials=3, out=tmp_path)
    seen = []
    second = tune(small_data(), settings=named(**QUICK), trials=3, out=tmp_path, on_progress=seen.append)
    assert seen == []
    assert second.trials == first.trials


def test_more_trials_go_on_as_if_they_had_been_asked_for_at_once(tmp_path):
    tune(small_data(), settings=named(**QUICK), trials=2, out=tmp_path / "twice")
    twice = tune(small_data(), settings=named(**QUICK), trials=4, out=tmp_path / "twice")
    once = tune(small_data(), settings=named(**QUICK), trials=4, out=tmp_path / "once")
    assert [(one.chosen, one.val) for one in twice.trials] == [(one.chosen, one.val) for one in once.trials]


def test_an_interrupted_search_goes_on_with_the_trial_in_flight(tmp_path):
    calls = 0

    def stop_in_the_second_trial() -> bool:
        nonlocal calls
        calls += 1
        return calls == 6

    options = {**QUICK, "trials": 3, "checkpoint_seconds": 0}
    with pytest.raises(Interrupted):
        tune(small_data(), settings=named(**options), out=tmp_path / "cut", should_stop=stop_in_the_second_trial)
    cut = tune(small_data(), settings=named(**options), out=tmp_path / "cut")
    whole = tune(small_data(), settings=named(**options), out=tmp_path / "whole")
    assert [(one.state, one.chosen, one.val) for one in cut.trials] == [
        (one.state, one.chosen, one.val) for one in whole.trials
    ]


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on(tmp_path):
    code = (
        "import sys\nfrom tests.automl.test_tune import QUICK\nfrom tests.graphs import small_data\n"
        "from legnn.automl.tune import tune\n"
        "tune(small_data(), trials=3, out=sys.argv[1], checkpoint_seconds=0, **{**QUICK, 'epochs': 100_000})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "cut")], cwd=Path(__file__).parents[2])
    metrics = tmp_path / "cut" / "trials" / "0" / "metrics.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (metrics.is_file() and metrics.read_text().count("\n") > 30):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert metrics.is_file()
    # as if the process had been killed while it wrote to the journal: its last line cut short, its lock held
    journal, lock = (tmp_path / "cut" / name for name in ("study.log", "study.log.lock"))
    with open(journal, "a") as file:
        file.write('{"op_code": 5, "wor')
    # now and then it really was, and has left one
    if not lock.is_symlink():
        lock.symlink_to(journal)
    seen = []
    limited = {**QUICK, "epochs": 100_000, "checkpoint_seconds": 0}
    with pytest.raises(Interrupted):
        tune(
            small_data(),
            settings=named(**limited),
            trials=3,
            out=tmp_path / "cut",
            on_progress=seen.append,
            should_stop=lambda: len(seen) > 2,
        )
    epochs = [one.log.epoch for one in seen if one.log is not None]
    assert seen[0].trial == 0
    assert epochs[0] > 20


def outcomes(found) -> list:
    return [(one.state, one.chosen, one.val) for one in found.trials]


def test_trials_are_to_the_bit_what_their_settings_come_to_alone(tmp_path):
    found = tune(small_data(), settings=named(**{**QUICK, "epochs": 6}), trials=3, out=tmp_path / "all")
    for one in found.trials:
        folder = tmp_path / "all" / "trials" / str(one.number)
        train(small_data(), settings=Settings.from_yaml(folder / "settings.yaml"), out=tmp_path / str(one.number))
        assert_same_run(folder, tmp_path / str(one.number))


def journal_of(folder: Path) -> list[dict]:
    """The entries of Optuna's journal."""
    return [json.loads(line) for line in (folder / "study.log").read_text().splitlines()]


def reported(folder: Path) -> list[tuple[int, float]]:
    """The epochs that trials reported, and the best validation accuracy so far in each."""
    return [(entry["step"], entry["intermediate_value"]) for entry in journal_of(folder) if "step" in entry]


def test_a_trial_that_goes_on_reports_the_best_of_all_its_epochs(tmp_path):
    options = {**QUICK, "epochs": 40, "patience": 40, "trials": 1, "lr": 1.0, "checkpoint_seconds": 0}
    seen = []
    tune(small_data(), settings=named(**options), out=tmp_path / "whole")
    with pytest.raises(Interrupted):
        tune(
            small_data(),
            settings=named(**options),
            out=tmp_path / "cut",
            on_progress=seen.append,
            should_stop=lambda: len(seen) == 20,
        )
    tune(small_data(), settings=named(**options), out=tmp_path / "cut")
    assert [epoch for epoch, _ in reported(tmp_path / "whole")] == list(range(5, 41, 5))
    assert reported(tmp_path / "cut") == reported(tmp_path / "whole")


def test_a_callback_may_train_on_another_graph(tmp_path):
    other, found = small_data(nodes=30), []

    def on_progress(progress) -> None:
        if progress.log is not None and progress.log.epoch == 2:
            found.append(train(other, epochs=2, device="cpu").predictions)

    tune(small_data(), settings=named(**QUICK), trials=2, out=tmp_path, on_progress=on_progress)
    expected = train(other, epochs=2, device="cpu").predictions
    assert found
    assert all(one.equals(expected) for one in found)


def test_test_labels_change_no_choice(tmp_path):
    data = small_data(60)
    shuffled = data.clone()
    shuffled.y[data.test_mask] = (data.y[data.test_mask] + 1) % 3
    given = {**QUICK, "architecture": "legnn", "layers": 2, "trials": 4, "seed": 1, "preset": "simple", "epochs": 12}
    one = tune(data, settings=named(**given), out=tmp_path / "one")
    other = tune(shuffled, settings=named(**given), out=tmp_path / "other")
    assert [(t.state, t.chosen, t.val) for t in one.trials] == [(t.state, t.chosen, t.val) for t in other.trials]
    assert one.best.number == other.best.number
    assert one.result.test != other.result.test


def test_given_settings_are_never_varied(tmp_path):
    given = {**QUICK, "dropout": 0.35, "norm": "layer"}
    found = tune(small_data(), settings=named(**given, seed=7), trials=3, out=tmp_path)
    for one in found.trials:
        assert not set(one.chosen) & {*given, "seed"}
        model = Run.open(tmp_path / "trials" / str(one.number)).settings
        assert (model.model.dropout, model.model.norm, model.model.hidden) == (0.35, "layer", 8)
        assert model.train.seed == 7


def easy_data() -> tuple:
    """Features without noise: with little dropout they are learned in some twenty epochs, with much not in sixty."""
    data = small_data(90)
    data.x = torch.nn.functional.one_hot(data.y.clamp(min=0), 3).float()
    given = {**QUICK, "epochs": 60, "patience": 60, "layers": 2, "norm": "none", "feature_scale": "none", "lr": 0.003}
    given |= {"weight_decay": 0.0, "weight_decay_layers": 0.0, "class_weights": "none", "cosine_steps": 1_000_000}
    return data, given


def test_a_trial_that_ended_before_a_kill_is_noted_by_the_next_call(tmp_path):
    data, given = easy_data()
    whole = tune(data, settings=named(**given), trials=4, out=tmp_path / "whole")
    # the state after a kill between the end of the last run and the entry that says so
    journal = shutil.copytree(tmp_path / "whole", tmp_path / "cut") / "study.log"
    entries, lines = journal_of(tmp_path / "whole"), journal.read_text().splitlines(keepends=True)
    first = next(k for k, entry in enumerate(entries) if entry.get("trial_id") == 3 and "seconds" in str(entry))
    assert [entry["trial_id"] for entry in entries[first:]] == [3] * len(entries[first:])
    journal.write_text("".join(lines[:first]))
    for name in ("trials.csv", "best.yaml"):
        (tmp_path / "cut" / name).unlink()
    cut = tune(data, settings=named(**given), trials=4, out=tmp_path / "cut")
    assert outcomes(cut) == outcomes(whole)


def test_a_hopeless_trial_is_pruned_early(tmp_path):
    data, given = easy_data()
    found = tune(data, settings=named(**given), trials=9, out=tmp_path)
    pruned = [one for one in found.trials if one.state == "pruned" and not one.why]
    assert pruned
    for one in pruned:
        assert WARMUP_EPOCHS <= Run.open(tmp_path / "trials" / str(one.number)).result.epochs < 60
        assert one.val < found.best.val


def test_settings_that_were_tried_are_not_trained_again_and_an_exhausted_space_ends_the_search(tmp_path):
    given = {
        **QUICK,
        "layers": 1,
        "feature_scale": "none",
        "input_dropout": 0.0,
        "weight_decay": 0.0,
        "weight_decay_layers": 0.0,
    }
    found = tune(small_data(), settings=named(**given, lr=0.01, cosine_steps="epochs"), budget=60, out=tmp_path)
    trained = [one for one in found.trials if not one.why]
    assert [one.chosen for one in trained] == [{"class_weights": "none"}, {"class_weights": "balanced"}]
    assert {path.name for path in (tmp_path / "trials").iterdir()} == {str(one.number) for one in trained}


def test_settings_that_fail_leave_their_reason_and_the_others_go_on(tmp_path):
    made = []

    def make(settings, both, out):
        made.append(out)
        if len(made) == 1:
            raise InputError("out of memory with batch = full")
        return SAGEConv(both, out)

    given = {"backbone": "own mean", "labels": "vanilla", "layers": 1, "hidden": 8, "epochs": 3, "as_train": False}
    with registered("own mean", lifted(make)):
        found = tune(small_data(), settings=named(**given), trials=3, out=tmp_path)
    assert [one.state for one in found.trials] == ["failed", "complete", "complete"]
    assert found.trials[0].why == "out of memory with batch = full"
    assert pd.read_csv(tmp_path / "trials.csv")["why"][0] == "out of memory with batch = full"


def test_the_budget_ends_the_trial_in_flight_and_the_same_call_begins_no_other(tmp_path):
    given = {**QUICK, "epochs": 1_000_000, "patience": 1_000_000}
    start = time.monotonic()
    found = tune(small_data(), settings=named(**given), budget=0.5, out=tmp_path)
    assert time.monotonic() - start < 10
    assert found.trials[-1].state == "complete"
    again = tune(small_data(), settings=named(**given), budget=0.5, out=tmp_path)
    assert again.trials == found.trials


def test_the_papers_grid_is_searched_once_through():
    tuned = Tuned(Settings(preset="paper", values=named(source="cora")), FACTS, "paper", 0)
    assert len(tuned.grid()) == 6 * 3
    assert {tuple(sorted(one)) for one in tuned.grid()} == {("dropout", "lr")}
    as_train = Settings(preset="paper", values=named(source="ogbn-mag", as_train=True, lr=0.01))
    assert len(Tuned(as_train, FACTS, "paper", 0).grid()) == 4 * 5 * 5


def test_the_papers_grid_has_an_end(tmp_path):
    given = {**QUICK, "lr": 0.001, "layers": 2}
    found = tune(small_data(), settings=named(**given), trials=100, space="paper", out=tmp_path)
    assert found.settings.preset == "paper"
    assert sorted(one.chosen["dropout"] for one in found.trials) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_another_search_in_the_same_folder_is_refused(tmp_path):
    tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path)
    with pytest.raises(InputError, match="holds a search with another seed; give another folder as `out`"):
        tune(small_data(), settings=named(**QUICK, seed=1), trials=1, out=tmp_path)
    with pytest.raises(InputError, match="with other settings"):
        tune(small_data(), settings=named(**{**QUICK, "hidden": 16}), trials=1, out=tmp_path)
    with pytest.raises(InputError, match="other data"):
        tune(small_data(seed=3), settings=named(**QUICK), trials=1, out=tmp_path)


def test_the_journal_is_lines_of_json(tmp_path):
    tune(small_data(), settings=named(**QUICK), trials=2, out=tmp_path)
    lines = (tmp_path / "study.log").read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_damaged_journal_is_named(tmp_path):
    tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path)
    journal = tmp_path / "study.log"
    journal.write_text(journal.read_text().replace('"op_code":4', "op_code", 1))
    with pytest.raises(InputError, match=r"study\.log is damaged"):
        tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path)


def test_a_folder_in_which_another_process_tunes_is_refused(tmp_path):
    said = []

    def begin_another(progress) -> None:
        with pytest.raises(FolderInUse, match="is writing to"):
            tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path)
        said.append(progress.trial)

    tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path, on_progress=begin_another)
    assert said


def test_a_missing_optuna_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"install it with: pip install legnn\[tune\]"):
        tune(small_data(), settings=named(**QUICK), trials=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"trials": 0}, "trials must be above 0"),
        ({"budget": -1.0}, "budget must be above 0"),
        ({"space": "wide"}, "space must be full or paper"),
        ({"hiden": 8}, "there is no setting 'hiden'"),
    ],
)
def test_a_mistake_is_named_before_anything_is_made(tmp_path, wrong, words):
    with pytest.raises(InputError, match=words):
        tune(small_data(), settings=named(**wrong), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
