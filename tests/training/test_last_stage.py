"""The last stage of a whole graph for some nodes alone: values and gradients are those of all nodes."""

import pytest
import torch
from tests.graphs import small_data
from tests.training.mini_batches import NoStep, full_batch, make

import legnn
from legnn.config import SelfTrainingSettings
from legnn.training import ASTrain, last_stage
from legnn.training.full_batch import FullBatch

MODELS = [
    {"backbone": backbone, "labels": labels, "normalize": normalize}
    for backbone in ("gcn", "sage", "gat", "gcnii")
    for labels, normalize in (("enhanced", "joint"), ("enhanced", "relation"), ("concat", "relation"))
] + [{"backbone": "gat", "labels": "vanilla"}, {"backbone": "gat", "layers": 3, "residual": "identity"}]


@pytest.fixture
def always(monkeypatch):
    """A block is taken however little it saves; returns how many nodes each of them computes."""
    monkeypatch.setattr(last_stage, "WORTH_BLOCK", -(10**18))
    made = []
    original = last_stage.all_neighbors

    def note(graph, nodes, sampler):
        made.append(nodes.numel())
        return original(graph, nodes, sampler)

    monkeypatch.setattr(last_stage, "all_neighbors", note)
    return made


def losses_and_gradients(batching: FullBatch, epoch: int = 1) -> tuple[torch.Tensor, torch.Tensor, dict]:
    return (
        torch.stack([*batching.train_epoch(epoch)]),
        torch.stack([*batching.validate(batching.task.train)]),
        batching.optimizer.seen[-1],
    )


@pytest.mark.parametrize("options", MODELS, ids=lambda options: "-".join(map(str, options.values())))
def test_losses_gradients_and_validation_are_those_of_all_nodes(always, options):
    model, task = make(nodes=60, dropout=0.0, **options)
    alone = losses_and_gradients(full_batch(model, task))
    assert always == [task.train.numel(), task.val.numel()]
    last_stage.WORTH_BLOCK = 10**18
    of_all = losses_and_gradients(full_batch(model, task))
    torch.testing.assert_close(alone, of_all, equal_nan=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", MODELS[:3], ids=lambda options: "-".join(map(str, options.values())))
def test_predictions_of_some_nodes_are_those_of_all_nodes(always, options):
    model, task = make(nodes=60, **options)
    batching, nodes = full_batch(model, task), torch.tensor([7, 3, 50, 3])
    alone = batching.logits(task.train, nodes, lambda logits: logits)
    assert always == [nodes.numel()]
    torch.testing.assert_close(alone, batching.all_logits(task.train)[nodes], rtol=1e-4, atol=1e-5)


def test_without_candidates_that_can_be_chosen_there_are_no_pseudo_labels_and_then_all_nodes_are_computed(always):
    rule = ASTrain(SelfTrainingSettings(as_train=True, threshold=0.3, delta=10.0))
    model, task = make(nodes=60, dropout=0.0)
    early = full_batch(model, task, rule=rule).train_epoch(4)
    assert (early.pseudo_labels, early.pseudo_loss) == (0, 0)
    assert early.pseudo_label_accuracy.isnan()
    assert always == [task.train.numel()]
    always.clear()
    late = full_batch(model, task, rule=rule).train_epoch(1000)
    assert late.pseudo_labels > 0
    assert always == []


def test_a_batch_norm_is_trained_on_all_nodes(always):
    model, task = make(nodes=60, norm="batch")
    batching = full_batch(model, task, NoStep(model))
    batching.train_epoch(1)
    assert always == []
    batching.validate(task.train)
    assert always == [task.val.numel()]


@pytest.mark.parametrize("architecture", ["jknet", "unimp", "deeper_gcn", "gaan", "sign", "mlp", "legnn"])
def test_every_design_is_validated_alike(always, architecture):
    def val_loss() -> float:
        logs = []
        given = {"epochs": 2, "hidden": 8, "heads": 2, "dropout": 0.0, "norm": "layer"}
        legnn.train(small_data(60), architecture=architecture, device="cpu", on_epoch=logs.append, **given)
        return logs[-1].val_loss

    alone = val_loss()
    last_stage.WORTH_BLOCK = 10**18
    assert alone == pytest.approx(val_loss(), rel=1e-4)


def test_a_small_model_computes_all_nodes():
    model, task = make(nodes=60)
    assert last_stage.last_block(model, task.graph, task.train, training=True) is None
