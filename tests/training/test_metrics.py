"""Scores of probabilities and classes, compared with scikit-learn's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    roc_auc_score,
)
from sklearn.preprocessing import label_binarize

from legnn.training import METRICS, score
from legnn.training.metrics import CALIBRATION_BINS, validation_metrics

drawn = st.integers(2, 6).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(st.integers(0, classes - 1), min_size=1, max_size=30),
        st.integers(0, 1000),
        # a few distinct scores make ties
        st.sampled_from([2, 1000]),
    )
)


def probabilities(classes: int, nodes: int, seed: int, levels: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, levels + 1, (nodes, classes), generator=generator).double().log().softmax(-1)


@given(drawn)
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_scores_of_classes_equal_those_of_scikit_learn(case):
    classes, truth, seed, levels = case
    p = probabilities(classes, len(truth), seed, levels)
    scores, guess = score(p, torch.tensor(truth)), p.argmax(-1).tolist()
    assert scores["accuracy"] == pytest.approx(accuracy_score(truth, guess))
    assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, guess))
    assert scores["macro_f1"] == pytest.approx(f1_score(truth, guess, average="macro"))
    assert scores["majority_accuracy"] == max(map(truth.count, truth)) / len(truth)
    one_hot = torch.nn.functional.one_hot(torch.tensor(truth), classes)
    assert scores["brier"] == pytest.approx(float((p - one_hot).square().sum(1).mean()))
    assert scores["log_loss"] == pytest.approx(log_loss(truth, p.numpy(), labels=range(classes)))


@given(drawn)
@settings(max_examples=40, deadline=None)
def test_areas_are_those_of_scikit_learn_of_the_rarer_class_or_the_mean_over_classes(case):
    classes, truth, seed, levels = case
    p, y = probabilities(classes, len(truth), seed, levels), torch.tensor(truth)
    scores = score(p, y)
    one_hot = torch.nn.functional.one_hot(y, classes).numpy()
    scored = [c for c in range(classes) if 0 < truth.count(c) < len(truth)]
    if classes == 2 and scored:
        scored = [min((1, 0), key=truth.count)]
    if not scored:
        assert "roc_auc" not in scores
        assert "average_precision" not in scores
        return
    for name, reference in {"roc_auc": roc_auc_score, "average_precision": average_precision_score}.items():
        values = [reference(one_hot[:, c], p[:, c].numpy()) for c in scored]
        assert scores[name] == pytest.approx(sum(values) / len(values)), name


def test_the_mean_auc_is_scikit_learns_one_against_the_rest():
    y = torch.arange(60) % 3
    p = probabilities(3, 60, 0, 1000)
    assert label_binarize(y, classes=[0, 1, 2]).shape == p.shape
    assert score(p, y)["roc_auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))


def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy_by_bin():
    p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [1.0, 0.0]])
    y = torch.tensor([0, 1, 0, 0])
    assert CALIBRATION_BINS == 15
    assert score(p, y)["ece"] == pytest.approx((abs(1 - 1.8) + abs(1 - 0.6) + 0) / 4)


def test_no_nodes_have_no_score():
    assert score(torch.empty(0, 3), torch.empty(0, dtype=torch.long)) is None


@given(drawn)
@settings(max_examples=30, deadline=None)
def test_an_epoch_computes_accuracy_loss_and_the_metric_that_chooses(case):
    classes, truth, seed, _ = case
    y = torch.tensor(truth)
    logits = torch.randn(len(truth), classes, generator=torch.Generator().manual_seed(seed))
    metrics = validation_metrics(logits, y, "ece")
    assert metrics.keys() == {"val_loss", "val/accuracy", "val/ece"}
    by_hand = -sum(float(logits[k].log_softmax(-1)[y[k]]) for k in range(len(truth))) / len(truth)
    assert float(metrics["val_loss"]) == pytest.approx(by_hand, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_prediction_has_the_best_score(name):
    y = torch.arange(12) % 3
    perfect, wrong = torch.eye(3)[y], torch.eye(3)[(y + 1) % 3]
    sign = 1 if METRICS[name].larger_is_better else -1
    assert name == "majority_accuracy" or sign * score(perfect, y)[name] > sign * score(wrong, y)[name]
