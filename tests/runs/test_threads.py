"""Runs and features that do not depend on the number of threads."""

import pytest
import torch
from tests.graphs import small_data
from tests.named import arguments, named
from threadpoolctl import threadpool_limits

import legnn
from legnn.data.embedding import spectral
from legnn.io.text_features import TextFeatures
from legnn.ops.runtime.threads import limit_threads
from legnn.runs.resources import SMALL_EPOCH, cpu_threads

QUICK = {"epochs": 4, "hidden": 16}


@pytest.mark.parametrize(
    "given", [{"backbone": "gat", "as_train": True, "pseudo_label_threshold": 0.3}, {"labels": "enhanced"}]
)
def test_a_small_run_is_the_same_for_any_number_of_threads(given):
    found = []
    for threads in (1, 2):
        with limit_threads(threads):
            # seven classes: MKL's products of seven rows differ between one thread and two
            run = legnn.train(small_data(140, 7, 8), **arguments(**QUICK, **given))
            found.append(
                (run.predictions, run.predict_proba(), {k: v.clone() for k, v in run.model.state_dict().items()})
            )
    (first, p, weights), (second, q, others) = found
    assert first.equals(second)
    assert p.equals(q)
    assert all(torch.equal(value, others[name]) for name, value in weights.items())


def test_a_small_epoch_takes_one_thread_and_a_large_one_all():
    graph = legnn.load(small_data())
    settings = legnn.Settings().override(named(hidden=16)).resolve(graph.facts())
    with limit_threads(3):
        assert cpu_threads(settings, graph) == 1
        assert cpu_threads(settings.override(named(threads=2)), graph) == 2
        wide = settings.override(named(hidden=3200))
        assert wide.model.hidden**2 * graph.num_nodes * wide.model.layers > SMALL_EPOCH
        assert cpu_threads(wide, graph) == 3


def test_a_run_takes_the_threads_it_is_given_and_leaves_those_of_the_caller():
    seen = []
    with limit_threads(1):
        legnn.train(
            small_data(), **arguments(**QUICK, threads=2), on_epoch=lambda log: seen.append(torch.get_num_threads())
        )
        assert torch.get_num_threads() == 1
    assert set(seen) == {2}


def test_spectral_features_are_the_same_for_any_number_of_threads():
    edges = torch.randint(0, 3000, (2, 12_000), generator=torch.Generator().manual_seed(0))
    found = []
    for threads in (1, 2):
        with limit_threads(threads):
            found.append(spectral(edges, 3000, 32, 0))
    assert torch.equal(*found)


def test_text_features_are_the_same_for_any_number_of_threads():
    numbers = torch.randint(0, 400, (600, 12), generator=torch.Generator().manual_seed(0)).tolist()
    texts = [" ".join(f"word{k}" for k in row) for row in numbers]
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fitted = TextFeatures.fit(texts, 32)
            found.append((fitted, fitted.transform(texts)))
    assert found[0][0] == found[1][0]
    assert (found[0][1] == found[1][1]).all()
