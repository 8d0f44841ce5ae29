"""What training costs: measured with the settings of a run, which stays as it is."""

import pytest
import torch
from tests.graphs import small_data

import legnn
from legnn.analysis.cost import REPEATS, WARM_UP, training_cost
from legnn.training import Trainer

QUICK = {"hidden": 8, "epochs": 20, "patience": 20}


@pytest.mark.parametrize(
    "options",
    [
        {"as_train": True, "choose": "agreement", "threshold": 0.3},
        {"as_train": True, "batch": 5, "fanout": "3"},
        {"architecture": "pyg_gcn"},
        {"architecture": "label_propagation"},
    ],
)
def test_an_epoch_is_timed_after_the_warm_up_and_numbered_as_one_of_the_runs_last(monkeypatch, options):
    run = legnn.train(small_data(), **QUICK, **options)
    weights = {name: value.clone() for name, value in run.model.state_dict().items()}
    seen = []
    train_epoch = Trainer.train_epoch

    def watched(trainer: Trainer):
        metrics = train_epoch(trainer)
        seen.append(trainer.epoch)
        return metrics

    monkeypatch.setattr(Trainer, "train_epoch", watched)
    random = torch.get_rng_state()
    cost = training_cost(run, "cpu")
    assert cost.seconds > 0
    assert cost.peak_bytes is None, "a process knows no peak of its own part"
    assert len(seen) == WARM_UP + REPEATS
    assert seen[-1] == max(run.result.epochs, WARM_UP + REPEATS)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, weights[name]) for name, value in run.model.state_dict().items())


def test_a_new_trainer_of_a_run_trains_as_the_run_did(tmp_path):
    run = legnn.train(small_data(), out=tmp_path / "run", **QUICK)
    losses = []
    with legnn.Run.open(tmp_path / "run").training(run.own_graph(), device="cpu") as trainer:
        trainer.fit(lambda log: losses.append(log.loss))
    assert all(torch.equal(value, trainer.best[name]) for name, value in run.model.state_dict().items())
    assert len(losses) == run.result.epochs


@pytest.mark.gpu
def test_on_a_gpu_the_peak_holds_the_features_and_more_for_a_wider_model():
    small, large = (legnn.train(small_data(), **{**QUICK, "hidden": hidden}) for hidden in (8, 512))
    peaks = [training_cost(run, "cuda").peak_bytes for run in (small, large)]
    assert 0 < peaks[0] < peaks[1]
