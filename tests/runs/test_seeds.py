"""Several seeds: a folder each, and a summary beside them."""

import json
import statistics
from dataclasses import asdict, replace

import pytest
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.errors import InputError
from legnn.runs import Result, summarize
from legnn.runs.folder import folder_kind
from legnn.sweep.seeds import resume_seeds

QUICK = {"epochs": 4, "hidden": 8}


def test_every_seed_has_its_folder_and_the_summary_its_mean_and_unbiased_deviation(tmp_path):
    summary = legnn.train_seeds(small_data(), **arguments(**QUICK, seed=5), seeds=3, out=tmp_path / "runs").summary
    assert summary.seeds == [5, 6, 7]
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["digests.json", "graph", "seed-5", "seed-6", "seed-7", "seeds.json", "summary.json", "sweep.json"]
    assert json.loads((tmp_path / "runs" / "summary.json").read_text()) == asdict(summary)
    results = [json.loads((tmp_path / "runs" / f"seed-{s}" / "result.json").read_text()) for s in (5, 6, 7)]
    assert [result["seed"] for result in results] == [5, 6, 7]
    for split in ("val", "test", "train_masked"):
        for metric in ("accuracy", "macro_f1"):
            values = [result[split][metric] for result in results]
            found = getattr(summary, split)[metric]
            assert found.mean == pytest.approx(statistics.mean(values))
            assert found.std == pytest.approx(statistics.stdev(values))
    assert len({result["val"]["macro_f1"] for result in results}) > 1


def test_a_run_among_seeds_equals_the_same_run_alone(tmp_path):
    legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=2, out=tmp_path / "runs")
    alone = legnn.train(small_data(), **arguments(**QUICK, seed=1))
    among = legnn.Run.open(tmp_path / "runs" / "seed-1")
    assert among.predictions.equals(alone.predictions)
    assert among.settings.train.seed == 1


def test_finished_seeds_are_read_and_not_trained_again(tmp_path):
    summary = legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=2, out=tmp_path / "runs").summary
    events = []
    assert resume_seeds(tmp_path / "runs", small_data(), on_event=events.append).summary == summary
    assert resume_seeds(tmp_path / "runs").summary == summary
    assert events == []


def test_one_seed_has_no_deviation():
    assert legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=1).summary.val["accuracy"].std is None


def test_no_seeds_are_refused_before_a_folder_is_made(tmp_path):
    with pytest.raises(InputError, match="seeds must be at least 1, got 0"):
        legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=0, out=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_will_do_and_a_full_one_will_not(tmp_path):
    (tmp_path / "runs").mkdir()
    legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=1, out=tmp_path / "runs")
    assert folder_kind(tmp_path / "runs") == "seeds"
    with pytest.raises(InputError, match="holds a finished run; give another"):
        legnn.train_seeds(small_data(), **arguments(**QUICK), seeds=1, out=tmp_path / "runs")


def test_the_summary_is_over_the_splits_that_are_scored():
    run = legnn.train(small_data(), **arguments(**QUICK)).result

    def result(accuracy: float) -> Result:
        scores = {"accuracy": accuracy}
        return replace(run, val=scores, test=None, train_masked=scores, seconds=1.5)

    summary = summarize([result(0.5), result(0.7)])
    assert summary.test is None
    assert summary.val["accuracy"].mean == pytest.approx(0.6)
    assert summary.val["accuracy"].std == pytest.approx(0.1 * 2**0.5)
    assert summary.seconds == 3.0
