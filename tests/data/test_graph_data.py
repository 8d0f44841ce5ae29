"""`GraphData`: its edges, its way to PyG and back, its facts and its fingerprint."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs import small_data
from tests.typed_graphs import small_hetero, with_tags
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops, coalesce, is_undirected, to_undirected

from legnn import GraphData
from legnn.errors import InputError

NODES = 6
EDGES = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(1, 8)), min_size=1)


def pyg_graph(edges: list[tuple[int, int, int]], weighted: bool) -> Data:
    table = torch.tensor(edges)
    data = Data(x=torch.ones(NODES, 1), y=torch.arange(NODES) % 2, edge_index=table[:, :2].t().contiguous())
    if weighted:
        data.edge_weight = table[:, 2].float()
    return data


def assert_same(one: GraphData, other: GraphData) -> None:
    ours, theirs = one.to_pyg(), other.to_pyg()
    assert sorted(ours.keys()) == sorted(theirs.keys())
    for key in ours.keys():  # noqa: SIM118 (keys is PyG's method)
        if isinstance(ours[key], torch.Tensor):
            assert torch.equal(ours[key], theirs[key]), key
        elif isinstance(ours[key], bool):
            assert ours[key] == theirs[key], key
        else:
            assert list(ours[key]) == list(theirs[key]), key
    assert one.fingerprint() == other.fingerprint()


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_the_edges_are_those_of_pygs_functions(edges, weighted, undirected, remove_duplicates, self_loops):
    data = pyg_graph(edges, weighted)
    edge_index, weight = data.edge_index, data.get("edge_weight")
    if undirected and remove_duplicates:
        edge_index, weight = to_undirected(edge_index, weight, num_nodes=NODES, reduce="mean")
    elif undirected:
        edge_index, weight = (
            torch.cat([edge_index, edge_index.flip(0)], 1),
            weight if weight is None else weight.repeat(2),
        )
    elif remove_duplicates:
        edge_index, weight = coalesce(edge_index, weight, num_nodes=NODES, reduce="mean")
    if self_loops:
        edge_index, weight = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=NODES)
    order = torch.argsort(edge_index[1] * NODES + edge_index[0], stable=True)
    graph = GraphData.from_pyg(
        data, undirected=undirected, remove_duplicates=remove_duplicates, self_loops=self_loops
    ).to_pyg()
    assert torch.equal(graph.edge_index, edge_index[:, order])
    assert graph.edge_index.is_contiguous()
    assert torch.equal(graph.edge_weight, weight[order]) if weighted else "edge_weight" not in graph


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_a_graph_comes_back_from_pyg_as_it_went(edges, weighted, undirected, remove_duplicates, self_loops):
    options = {"undirected": undirected, "remove_duplicates": remove_duplicates, "self_loops": self_loops}
    graph = GraphData.from_pyg(pyg_graph(edges, weighted), **options)
    if not remove_duplicates:
        options["undirected"] = False  # reverse edges are there, and would be added once more
    assert_same(GraphData.from_pyg(graph.to_pyg(), **options), graph)


def test_all_fields_come_back_from_pyg():
    weight = torch.rand(small_data().edge_index.size(1)) + 0.5
    ids, names = [f"n{i}" for i in range(40)], [f"f{i}" for i in range(5)]
    label_graph = {"label_x": torch.rand(3, 4), "label_adjacency": torch.rand(3, 3), "class_names": list("abc")}
    data = small_data(edge_weight=weight, node_id=ids, feature_names=names, notes=["a note"], **label_graph)
    graph = GraphData.from_pyg(data)
    assert [*map(str, graph.notes)] == ["a note"]
    assert_same(GraphData.from_pyg(graph.to_pyg()), graph)


def test_several_node_types_come_back_from_pyg():
    graph = GraphData.from_pyg(with_tags(small_hetero()))
    again = GraphData.from_pyg(graph.to_pyg())
    assert_same(again, graph)
    assert again.num_types == 3
    assert again.node_types.target == "paper"
    assert torch.equal(again.target_index, graph.node_types.target_mask.nonzero().flatten())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"node_type": torch.zeros(5, dtype=torch.long)}, r"node_type of small must be an int64 from 0 to 1 for each"),
        ({"node_type": torch.full((52,), 2)}, r"node_type of small must be an int64 from 0 to 1 for each"),
        ({"target_type": "tag"}, r"target_type of small is 'tag'; it must be one of type_names, author, paper"),
        ({"target_type": "author"}, r"small has labels of other types than 'author'; take them out"),
    ],
)
def test_node_types_that_were_changed_by_hand_are_checked(fields, message):
    data = GraphData.from_pyg(small_hetero()).to_pyg()
    data.update(fields)
    with pytest.raises(InputError, match=message):
        GraphData.from_pyg(data)


@settings(deadline=None)
@given(EDGES, st.booleans(), st.booleans())
def test_an_undirected_graph_is_symmetric_and_has_each_edge_once(edges, weighted, self_loops):
    given = pyg_graph(edges, weighted)
    if weighted:
        given.edge_weight /= 3  # sums of thirds are rounded
    data = GraphData.from_pyg(given, self_loops=self_loops).to_pyg()
    assert is_undirected(data.edge_index, num_nodes=NODES)
    assert len(set(map(tuple, data.edge_index.t().tolist()))) == data.edge_index.shape[1]
    if weighted:
        dense = torch.zeros(NODES, NODES)
        dense[data.edge_index[0], data.edge_index[1]] = data.edge_weight
        assert torch.equal(dense, dense.t())


@settings(deadline=None)
@given(EDGES)
def test_every_node_has_one_self_loop(edges):
    source, target = GraphData.from_pyg(pyg_graph(edges, weighted=False), undirected=False).adjacency.edge_index
    assert torch.bincount(source[source == target], minlength=NODES).tolist() == [1] * NODES


def test_the_graph_given_keeps_its_edges():
    data = pyg_graph([(0, 1, 1)], weighted=True)
    GraphData.from_pyg(data)
    assert data.edge_index.tolist() == [[0], [1]]
    assert data.edge_weight.tolist() == [1.0]


def test_both_directions_listed_keep_the_scale_of_the_weights():
    graph = GraphData.from_pyg(pyg_graph([(0, 1, 2), (1, 0, 4)], weighted=True), self_loops=False)
    assert graph.adjacency.weight.tolist() == [3.0, 3.0]


def test_a_self_loop_keeps_its_weight_and_an_added_one_weighs_one():
    graph = GraphData.from_pyg(pyg_graph([(0, 0, 5), (0, 1, 2)], weighted=True)).to_pyg()
    loops = graph.edge_index[0] == graph.edge_index[1]
    assert graph.edge_weight[loops].tolist() == [5.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_parallel_edges_stay_where_nothing_is_asked_for():
    data = pyg_graph([(3, 1, 2), (0, 1, 2), (3, 1, 2)], weighted=False)
    graph = GraphData.from_pyg(data, undirected=False, remove_duplicates=False, self_loops=False)
    assert graph.adjacency.edge_index.tolist() == [[0, 3, 3], [1, 1, 1]]


def test_facts_are_numbers_of_the_graph():
    facts = GraphData.from_pyg(small_data(label_adjacency=torch.eye(3))).facts()
    assert (facts.num_train, facts.num_classes) == (int(small_data().train_mask.sum()), 3)
    assert facts.has_label_edges
    assert not facts.counts_features
    assert not GraphData.from_pyg(small_data()).facts().has_label_edges


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (torch.eye(40), True),
        (-torch.eye(40), False),
        (torch.ones(40, 4), False),
        (torch.tensor([[0.0, 1.0]]).repeat(40, 1), False),
    ],
)
def test_features_that_are_mostly_zero_and_never_negative_are_counts(x, expected):
    assert GraphData.from_pyg(small_data(x=x)).facts().counts_features == expected


def test_the_labeled_type_decides_whether_features_are_counts():
    graph = small_hetero(x=torch.eye(40))
    graph["author"].x = torch.randn(12, 60)
    assert GraphData.from_pyg(graph).facts().counts_features
    graph["author"].x, graph["paper"].x = torch.eye(12), torch.ones(40, 3)
    assert not GraphData.from_pyg(graph).facts().counts_features


def test_a_graph_is_changed_by_replacing_fields():
    graph = GraphData.from_pyg(small_data())
    with pytest.raises(FrozenInstanceError):
        graph.x = graph.x + 1
    other = replace(graph, x=graph.x + 1)
    assert other.fingerprint() != graph.fingerprint()
    assert replace(other, x=graph.x).fingerprint() == graph.fingerprint()


@pytest.mark.parametrize("field", ["y", "edge_index", "edge_weight", "train_mask", "label_x", "label_adjacency"])
def test_the_fingerprint_depends_on(field):
    weight = torch.ones(small_data().edge_index.size(1))
    fields = {"edge_weight": weight, "label_x": torch.ones(3, 2), "label_adjacency": torch.ones(3, 3)}
    one, other = small_data(**fields), small_data(**fields)
    other[field] = other[field].clone()
    if field == "train_mask":
        other.train_mask[0] = ~other.train_mask[0]
    elif field == "edge_index":
        other.edge_index[0, 0] = (other.edge_index[0, 0] + 1) % 40
    elif field == "y":
        other.y[0] = (other.y[0] + 1) % 3
    else:
        other[field][..., 0] += 1
    assert GraphData.from_pyg(one).fingerprint() != GraphData.from_pyg(other).fingerprint()
    assert GraphData.from_pyg(one).fingerprint() == GraphData.from_pyg(small_data(**fields)).fingerprint()
