"""Inference: probabilities, their post-processing, and the labels that it may see."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from tests.training.test_no_leak import folds_of, task_and_model

from legnn.training import Inference, LayerWise, assign_folds
from legnn.training.inference import class_and_confidence, to_probabilities, top_classes

CPU = torch.device("cpu")


def test_probabilities_sum_to_one_in_single_precision():
    p = to_probabilities(torch.tensor([[1e4, 0.0], [0.0, 0.0]], dtype=torch.float64))
    assert p.dtype == torch.float32
    assert p.tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_the_class_is_the_most_probable_and_its_probability_the_confidence():
    found = class_and_confidence(torch.tensor([[0.25, 0.75], [0.5, 0.5]]))
    assert found.tolist() == [[1.0, 0.75], [0.0, 0.5]]


class Counting(LayerWise):
    """Counts forward passes."""

    passes = 0

    def logits(self, *arguments):
        self.passes += 1
        return super().logits(*arguments)


def inference(kind: str, **options) -> Inference:
    torch.manual_seed(0)
    task, model = task_and_model(kind)
    predictor = Counting(model, task, CPU, torch.float32)
    return Inference(predictor, task, folds_of(task, 3), uses_labels=model.uses_labels, **options)


@pytest.mark.parametrize("postprocess", [None, lambda p, graph: 1 - p])
@pytest.mark.parametrize("kind", ["vanilla", "enhanced"])
def test_classes_are_those_of_the_probabilities_after_post_processing(kind, postprocess):
    found = inference(kind, postprocess=postprocess)
    assert torch.equal(found.predict(), class_and_confidence(found.predict_proba()))
    if postprocess is not None:
        assert torch.equal(found.predict_proba(), 1 - inference(kind).predict_proba())


@pytest.mark.parametrize("kind", ["vanilla", "enhanced"])
def test_post_processing_sees_all_nodes_and_the_labels_of_other_folds_alone(kind):
    seen = []

    def postprocess(p, graph):
        seen.append((p.size(0), graph.shown.tolist(), graph.y.tolist()))
        return p

    found = inference(kind, postprocess=postprocess)
    found.predict()
    train, y = found.task.train, found.task.y
    fold = found.fold[train]
    others = [train[fold != k] for k in fold.unique()]
    assert len(others) > 1
    expected = [(12, shown.tolist(), y[shown].tolist()) for shown in (train, *others)]
    assert seen == expected


def test_a_model_that_sees_no_labels_is_computed_once_for_all_folds():
    found = inference("vanilla", postprocess=lambda p, graph: p)
    found.predict()
    assert found.predictor.passes == 1
    plain = inference("vanilla")
    plain.predict()
    assert plain.predictor.passes == 1


@pytest.mark.parametrize("postprocess", [None, lambda p, graph: 1 - p])
@pytest.mark.parametrize("kind", ["vanilla", "enhanced"])
def test_top_classes_and_those_of_some_nodes_are_those_of_all_probabilities(kind, postprocess):
    found = inference(kind, postprocess=postprocess)
    p = found.predict_proba()
    assert torch.equal(found.predict(partial(top_classes, top=2)), top_classes(p, 2))
    assert torch.equal(found.predict(partial(top_classes, top=2))[:, 0], found.predict())
    nodes = torch.cat([found.task.train[:2], found.task.val]).sort().values
    assert torch.equal(found.proba_of(nodes), p[nodes])


def test_top_classes_are_in_order_and_no_more_than_there_are():
    p = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    assert top_classes(p, 9)[..., 0].tolist() == [[1, 2, 0], [0, 2, 1]]
    assert torch.equal(top_classes(p, 2)[..., 1].float(), torch.tensor([[0.5, 0.3], [0.6, 0.3]]))
    assert top_classes(p[:0], 2).shape == (0, 2, 2)


@pytest.mark.parametrize("ask", [Inference.predict, lambda one: one.predict(partial(top_classes, top=2))])
def test_who_asks_for_classes_never_has_the_logits_of_all_nodes(ask, monkeypatch):
    """Layer by layer they are reduced chunk by chunk."""
    found = inference("enhanced")
    found.predictor.is_at_once, found.predictor.chunk_size = False, 5
    sizes = []
    classify = type(found.predictor.model).classify
    monkeypatch.setattr(
        type(found.predictor.model), "classify", lambda model, nodes: sizes.append(len(nodes)) or classify(model, nodes)
    )
    ask(found)
    assert 0 < max(sizes) < len(found.task.x) / 2


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.uint64])
def test_folds_of_whole_numbers_are_by_the_hash_of_pandas(kind):
    ids = np.array([0, 1, 2, 100, 127, -1, -128]).astype(kind)
    expected = pd.util.hash_array(ids, categorize=False) % 7
    assert assign_folds(ids, 7).tolist() == expected.tolist()
