"""What training costs: measured with the settings of a run, which stays as it is."""

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments

import legnn
from legnn.analysis.cost import REPEATS, WARM_UP, training_cost
from legnn.runs import RunFolder
from legnn.runs.build import new_trainer
from legnn.training import Trainer
from legnn.training.ranks import SINGLE_PROCESS

QUICK = {"hidden": 8, "epochs": 20, "patience": 20}


@pytest.mark.parametrize(
    "options",
    [
        {"as_train": True, "pseudo_label_rule": "agreement", "pseudo_label_threshold": 0.3},
        {"as_train": True, "batch": 5, "fanout": "3"},
        {"architecture": "pyg_gcn"},
        {"architecture": "label_propagation"},
    ],
)
def test_an_epoch_is_timed_after_the_warm_up_and_numbered_as_one_of_the_runs_last(tmp_path, monkeypatch, options):
    run = legnn.train(small_data(), **arguments(**QUICK, **options), out=tmp_path / "run")
    weights = {name: value.clone() for name, value in run.model.state_dict().items()}
    seen = []
    train_epoch = Trainer.train_epoch

    def watched(trainer: Trainer):
        metrics = train_epoch(trainer)
        seen.append(trainer.epoch)
        return metrics

    monkeypatch.setattr(Trainer, "train_epoch", watched)
    random = torch.get_rng_state()
    cost = training_cost(RunFolder(tmp_path / "run"), run.own_graph(), "cpu")
    assert cost.seconds > 0
    assert cost.peak_bytes is None, "a process knows no peak of its own part"
    assert len(seen) == WARM_UP + REPEATS
    assert seen[-1] == max(run.result.epochs, WARM_UP + REPEATS)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, weights[name]) for name, value in run.model.state_dict().items())


def test_a_new_trainer_of_a_run_trains_as_the_run_did(tmp_path):
    run = legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "run")
    losses = []
    cpu = torch.device("cpu")
    with new_trainer(run.settings, run.own_graph(), run.card, cpu, SINGLE_PROCESS) as trainer:
        trainer.fit(lambda log: losses.append(log.loss))
    assert all(torch.equal(value, trainer.best[name]) for name, value in run.model.state_dict().items())
    assert len(losses) == run.result.epochs


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_the_peak_holds_the_features_and_more_for_a_wider_model(tmp_path):
    peaks = []
    for hidden in (8, 512):
        run = legnn.train(small_data(), **arguments(**{**QUICK, "hidden": hidden}), out=tmp_path / str(hidden))
        peaks.append(training_cost(RunFolder(tmp_path / str(hidden)), run.own_graph(), "cuda").peak_bytes)
    assert 0 < peaks[0] < peaks[1]
