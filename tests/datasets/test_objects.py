"""Graphs as other libraries hold them: NetworkX, PyG's data sets, SciPy matrices, frames."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from tests.graphs import small_data
from tests.named import named
from torch_geometric.data import Data, InMemoryDataset

import legnn
from legnn.errors import InputError

SPLITS = ("train", "val", "test")


def split_words(data: Data) -> list[str]:
    return [next((name for name in SPLITS if data[f"{name}_mask"][i]), "") for i in range(data.num_nodes)]


def as_networkx(data: Data, kind: type = nx.Graph) -> nx.Graph:
    graph = kind(name="small")
    for node, (x, y, split) in enumerate(zip(data.x.tolist(), data.y.tolist(), split_words(data), strict=True)):
        graph.add_node(node, x=x, split=split, **{} if y < 0 else {"label": y})
    graph.add_edges_from(data.edge_index.T.tolist())
    return graph


def as_matrix(data: Data) -> sparse.csr_matrix:
    source, target = data.edge_index.numpy()
    entries = np.ones(len(source)), (source, target)
    # parallel edges are one entry
    return (sparse.coo_matrix(entries, (data.num_nodes, data.num_nodes)).tocsr() > 0).astype(float)


def as_frames(data: Data) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame(data.x.numpy(), columns=[f"f{i}" for i in range(data.x.size(1))])
    nodes.insert(0, "id", np.arange(len(nodes)))
    nodes["label"] = [None if c < 0 else c for c in data.y.tolist()]
    nodes["split"] = split_words(data)
    source, target = data.edge_index.numpy()
    return nodes, pd.DataFrame({"source": source, "target": target})


class Several(InMemoryDataset):
    def __init__(self, graphs: list[Data]) -> None:
        super().__init__(None)
        self.data, self.slices = self.collate(graphs)


def plain(data: Data) -> Data:
    return Data(**{key: value for key, value in data.to_dict().items() if key != "name"})


FORMS = {
    "NetworkX": lambda data: as_networkx(data),
    "NetworkX with directions": lambda data: as_networkx(data, nx.DiGraph),
    "a data set": lambda data: Several([plain(data)]),
    "frames": as_frames,
    "arrays": lambda data: legnn.from_arrays(data.edge_index, data.x, data.y, split=split_words(data)),
    "a matrix": lambda data: legnn.from_arrays(as_matrix(data), data.x.numpy(), data.y, split=split_words(data)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_is_the_same_in_every_form(form):
    data = small_data()
    expected, found = legnn.load(data), legnn.load(FORMS[form](data))
    assert found.fingerprint() == expected.fingerprint()
    assert found.class_names == expected.class_names
    assert found.node_id.tolist() == expected.node_id.tolist()


@pytest.mark.parametrize("form", ["NetworkX", "frames", "a data set"])
def test_train_and_predict_take_a_graph_in_every_form(form):
    data = small_data()
    given = FORMS[form](data)
    run = legnn.train(given, epochs=2, hidden=8, preset="simple")
    expected = legnn.train(data, epochs=2, hidden=8, preset="simple")
    pd.testing.assert_frame_equal(run.predictions, expected.predictions)
    pd.testing.assert_frame_equal(run.predict(given), run.predictions)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_a_tuple_of_edges_features_and_labels_is_a_graph(kind):
    data = small_data()
    words = np.array(["unknown", "b", "c"], dtype=object)
    y = [None if c < 0 else words[c] for c in data.y.tolist()]
    graph = legnn.load((kind(as_matrix(data)), data.x.numpy(), y))
    assert graph.class_names == ["b", "c", "unknown"]
    assert (graph.y >= 0).tolist() == (data.y >= 0).tolist()
    assert (graph.train_mask | graph.val_mask | graph.test_mask).tolist() == (data.y >= 0).tolist(), "splits are drawn"


def test_entries_of_a_matrix_are_weights_and_go_from_row_to_column():
    matrix = sparse.csr_matrix(np.array([[0, 2.0, 0], [0, 0, 3.0], [0, 0, 0]]))
    found = legnn.from_arrays(matrix, np.eye(3), [0, 1, 0])
    assert found.edge_index.tolist() == [[0, 1], [1, 2]]
    assert found.edge_weight.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("edges", [[[0, 1, 2], [1, 2, 0]], [[0, 1], [1, 2], [2, 0]]])
def test_edges_may_be_two_rows_or_two_columns(edges):
    found = legnn.from_arrays(np.array(edges), np.eye(3), [0, 1, 0])
    assert found.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]


def test_ends_in_a_frame_are_ids_where_there_are_ids():
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]})
    found = legnn.from_arrays(edges, np.eye(3), [0, 1, 0], node_id=["a", "b", "c"])
    assert found.edge_index.tolist() == [[0, 1], [1, 2]]
    assert found.edge_weight.tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match=r"row 1 .* has the target 'c', which is no node"):
        legnn.from_arrays(edges, np.eye(2), [0, 1], node_id=["a", "b"])


@pytest.mark.parametrize(
    ("y", "numbers", "names"),
    [
        ([3, -1, 7, 3], [0, -1, 1, 0], [3, 7]),
        ([3.0, np.nan, 7.0, 3.0], [0, -1, 1, 0], [3, 7]),
        (["b", None, "a", ""], [1, -1, 0, -1], ["a", "b"]),
        (["b", np.nan, "a", "b"], [1, -1, 0, 1], ["a", "b"]),
        ([1, None, 2, -1], [0, -1, 1, -1], [1, 2]),
        ([True, False, True, True], [1, 0, 1, 1], [False, True]),
        (torch.tensor([[1], [-1], [0], [1]]), [1, -1, 0, 1], [0, 1]),
    ],
)
def test_labels_of_any_type_are_numbered_and_missing_ones_are_unlabeled(y, numbers, names):
    found = legnn.from_arrays([[0, 1], [1, 2], [2, 3]], np.eye(4), y)
    assert found.y.tolist() == numbers
    assert found.class_names == names


def test_nodes_of_networkx_that_are_no_numbers_are_texts():
    graph = nx.grid_2d_graph(2, 2)
    nx.set_node_attributes(graph, {node: float(sum(node)) for node in graph}, "x")
    nx.set_node_attributes(graph, {(0, 0): "a", (1, 1): "b"}, "y")
    found = legnn.load(graph, training=False)
    assert found.node_id.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert found.x.tolist() == [[0.0], [1.0], [1.0], [2.0]]
    assert found.y.tolist() == [0, -1, -1, 1]


def test_weights_of_networkx_are_kept():
    graph = as_networkx(small_data())
    nx.set_edge_attributes(graph, 2.0, "weight")
    assert (legnn.load(graph, self_loops=False).adjacency.weight == 2).all()


def broken(change) -> nx.Graph:
    graph = as_networkx(small_data())
    change(graph)
    return graph


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda: as_matrix(small_data()), "a csr_matrix alone is no graph"),
        (lambda: as_frames(small_data())[1], "a DataFrame alone is no graph"),
        (lambda: Several([plain(small_data())] * 3), "holds 3 graphs, and one graph is trained on; give one of them"),
        (lambda: nx.Graph(), "has no nodes"),
        (lambda: broken(lambda g: g.nodes[5].pop("x")), "1 node of small without the attribute x, the first is 5"),
        (lambda: broken(lambda g: g.nodes[5].update(x=[1.0])), r"x of node 5 of small has the shape \[1\]"),
        (
            lambda: broken(lambda g: g.nodes[5].update(split="tran")),
            r"node 5 of small is 'tran' \(did you mean 'train'",
        ),
        (lambda: broken(lambda g: [g.nodes[n].pop("label", 0) for n in g]), "small has no y"),
        (lambda: (np.zeros((3, 3)), np.eye(3), [0, 1, 0]), r"have the shape \[3, 3\]"),
        (lambda: (sparse.eye(4), np.eye(3), [0, 1, 0]), r"\[4, 4\] and x 3 rows; it must be \[3, 3\]"),
        (lambda: ([[0], [1]], np.eye(3), [0, 1]), "y of the graph has 2 entries and x 3 rows"),
        (lambda: ([[0], [1]], [["a"], ["b"]], [0, 1]), "x of the graph does not hold numbers alone"),
        (lambda: ([[0.5], [1]], np.eye(2), [0, 1]), "not whole"),
        (lambda: (1, 2, 3, 4), "a tuple of 4 is no graph"),
        (lambda: (pd.DataFrame({"label": [1]}), pd.DataFrame({"source": [1]})), "^nodes has no column 'id'"),
        (lambda: object(), "source must be a name, a folder, .* a NetworkX graph, .*, got object"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(source, words):
    with pytest.raises(InputError, match=words):
        legnn.train(source(), epochs=1)


def test_a_text_column_of_frames_becomes_features():
    nodes, edges = as_frames(small_data())
    nodes = nodes[["id", "label", "split"]].assign(words=["red apple", "green pear", "blue sea", "dark sky"] * 10)
    run = legnn.train(
        (nodes, edges), settings=named(text="words", text_channels=2, epochs=2, hidden=8), preset="simple"
    )
    assert run.own_graph().num_features == 2
    pd.testing.assert_frame_equal(run.predict((nodes, edges)), run.predictions)
