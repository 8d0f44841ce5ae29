"""Which nodes to label next: only such without a label, many kinds of them, and by sums that are what they say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data, table_folder
from torch_geometric.data import Data
from typer.testing import CliRunner

import legnn
from legnn.cli import make_app
from legnn.data import GraphData
from legnn.errors import InputError
from legnn.labels.acquisition import next_labels, pick_labels, smooth_features, uncertainty_of, unlabeled
from legnn.labels.coverage import CANDIDATES, LABELED, Coverage, Weights, to_scipy, travel_matrix


def random_graph(nodes: int, seed: int) -> GraphData:
    return GraphData.from_pyg(small_data(nodes=nodes, seed=seed))


def even_probabilities(graph: GraphData, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(torch.randn(graph.num_nodes, graph.num_classes, generator=generator), 1)


@pytest.fixture(scope="module")
def run():
    return legnn.train(small_data(nodes=90), epochs=3, hidden=8, device="cpu")


@settings(max_examples=15, deadline=None)
@given(nodes=st.integers(30, 90), number=st.integers(1, 40), seed=st.integers(0, 5))
def test_no_node_with_a_label_is_proposed_and_none_twice(nodes, number, seed):
    graph = random_graph(nodes, seed)
    picked = pick_labels(graph, even_probabilities(graph, seed), number).nodes
    free = set(unlabeled(graph).tolist())
    assert set(picked.tolist()) <= free
    assert (graph.y[picked] < 0).all()
    assert len(set(picked.tolist())) == len(picked) == min(number, len(free))


def test_classes_of_validation_and_test_nodes_change_nothing():
    graph = random_graph(90, 0)
    p = even_probabilities(graph)
    held = graph.val_mask | graph.test_mask
    other = replace(graph, y=torch.where(held, (graph.y + 1) % graph.num_classes, graph.y))
    assert np.array_equal(pick_labels(graph, p, 10).nodes, pick_labels(other, p, 10).nodes)


def test_reach_and_what_stays_open_equal_the_dense_sums():
    graph = random_graph(60, 1)
    A = to_scipy(graph.adjacency)
    P = A.toarray() / np.maximum(A.toarray().sum(1, keepdims=True), 1e-12)
    assert np.allclose(travel_matrix(A).toarray(), P)
    rho = np.linalg.matrix_power(P, 3)
    z, uncertainty = smooth_features(graph), uncertainty_of(even_probabilities(graph))
    labeled, free = graph.train_mask.nonzero().flatten().numpy(), unlabeled(graph)
    found = Coverage(A, z, uncertainty, labeled, free, 5, Weights(hops=3, uncertain=0.5))
    squares = ((z[:, None] - z[None]) ** 2).sum(-1)
    k = np.exp(-squares / found._scale)
    worth = 0.5 + 0.5 * uncertainty
    for picked in ([], [free[0]], [free[0], free[3]]):
        if picked:
            found.cover(picked[-1])
        told = [*labeled, *picked]
        left = np.exp(-(rho[:, told] + k[:, told]).sum(1))
        assert np.allclose(found.open, left, atol=1e-5)
        assert np.allclose(found.reach(), rho[:, free].T @ (worth * left), atol=1e-5)
        assert np.allclose(found.density, k[free] @ (worth * left) / len(z), atol=1e-5)


def twins() -> tuple[sp.csr_matrix, np.ndarray]:
    """Ten cliques of six nodes with equal features: nodes of a clique are duplicates of each other."""
    A = sp.block_diag([np.ones((6, 6))] * 10).tocsr()
    return A, np.repeat(np.eye(10, dtype=np.float32), 6, axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_has_no_duplicates_while_there_are_other_nodes(seed):
    A, z = twins()
    uncertainty = np.random.default_rng(seed).uniform(0.3, 1, 60)
    labeled = np.array([0, 1])
    picked = Coverage(A, z, uncertainty, labeled, np.arange(2, 60), 9).pick(9).nodes
    # the first clique has labels already
    assert sorted(picked // 6) == list(range(1, 10))


def test_picks_cover_both_of_two_planted_clusters():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 100)
    A = rng.random((200, 200)) < np.where(group[:, None] == group, 0.08, 0.002)
    edge_index = torch.from_numpy(np.stack(np.nonzero(np.triu(A, 1))))
    x = torch.from_numpy(rng.normal(size=(200, 4)) + group[:, None]).float()
    y, train = torch.full((200,), -1), torch.zeros(200, dtype=torch.bool)
    y[0], y[100], train[[0, 100]] = 0, 1, True
    none = torch.zeros_like(train)
    data = Data(x=x, y=y, edge_index=edge_index, train_mask=train, val_mask=none, test_mask=none)
    graph = GraphData.from_pyg(data, validation="none")
    picked = pick_labels(graph, torch.full((200, 2), 0.5), 6).nodes
    assert np.bincount(group[picked], minlength=2).min() >= 2


def test_score_falls_within_a_batch(run):
    table = next_labels(run, 8)
    assert table["score"].is_monotonic_decreasing
    assert table["rank"].tolist() == list(range(1, 9))


def test_the_same_run_gives_the_same_table(run):
    pd.testing.assert_frame_equal(next_labels(run, 8), next_labels(run, 8))


def test_a_large_graph_is_drawn_from_and_no_pick_has_a_label():
    graph = random_graph(6 * CANDIDATES, 2)
    assert len(unlabeled(graph)) > CANDIDATES
    assert int(graph.train_mask.sum()) > LABELED
    z = np.random.default_rng(0).standard_normal((graph.num_nodes, 4), dtype=np.float32)
    picked = pick_labels(graph, even_probabilities(graph), 3, z=z).nodes
    assert len(set(picked.tolist())) == 3
    assert (graph.y[picked] < 0).all()


def test_nothing_to_label_and_no_number_are_said(run):
    full = small_data(nodes=30)
    graph = GraphData.from_pyg(full)
    graph = replace(graph, y=graph.y.clamp(min=0))
    with pytest.raises(InputError, match="every node of small has a label"):
        pick_labels(graph, even_probabilities(graph), 3)
    with pytest.raises(InputError, match="n must be at least 1, got 0"):
        next_labels(run, 0)


def test_the_command_writes_what_the_function_returns(tmp_path):
    folder = table_folder(tmp_path / "graph", small_data(nodes=60))
    legnn.train(folder, out=tmp_path / "run", epochs=2, hidden=8, device="cpu")
    out = tmp_path / "next.csv"
    done = CliRunner().invoke(make_app(), ["labels", "next", str(tmp_path / "run"), "-n", "4", "--out", str(out)])
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    assert table["id"].tolist() == next_labels(legnn.open(tmp_path / "run"), 4)["id"].tolist()
    assert list(table) == ["rank", "id", "score", "prediction", "confidence", "uncertainty", "density", "reach"]
    assert "4 nodes to label" in done.output
