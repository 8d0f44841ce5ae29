"""The edges of a graph with several node types by relation, in a whole graph and in a sample."""

from dataclasses import replace

import pytest
import torch
from tests.nn.relation_graphs import RELATIONS, dense_relations, typed_graph

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph, sample_label_graph
from legnn.nn.relations import relation_graph


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_edge_is_in_the_graph_of_its_relation(weighted, ordered):
    graph = typed_graph(weighted=weighted, ordered=ordered)
    edges = relation_graph(graph, 3, RELATIONS)
    expected = dense_relations(graph)
    nodes = edges.sources.split(torch.arange(12)[:, None])
    for (source, target), relation in edges.relations.items():
        found = torch.zeros(12, 12, dtype=torch.float64)
        rows, cols = nodes[target].flatten(), nodes[source].flatten()
        adjacency = relation.adjacency
        weight = torch.ones(adjacency.num_edges).double() if adjacency.weight is None else adjacency.weight
        found.index_put_((rows[adjacency.row.long()], cols[adjacency.col.long()]), weight, accumulate=True)
        torch.testing.assert_close(found, expected[source, target])


@pytest.mark.parametrize("ordered", [False, True])
def test_rows_that_are_split_by_type_are_joined_again(ordered):
    graph, x = typed_graph(ordered=ordered), torch.randn(12, 2)
    edges = relation_graph(graph, 3, RELATIONS)
    parts = edges.targets.split(x)
    for kind, part in enumerate(parts):
        assert torch.equal(part, x[graph.node_type == kind])
    assert torch.equal(edges.targets.join(parts), x)


def test_every_edge_has_the_row_of_its_source_in_the_table_of_what_is_sent():
    graph = typed_graph()
    edges = relation_graph(graph, 3, RELATIONS)
    nodes = edges.sources.split(torch.arange(12))
    table = [(node, relation) for relation in RELATIONS for node in nodes[relation[0]].tolist()]
    types = graph.node_type.tolist()
    found = [table[row] for row in edges.table_row.tolist()]
    assert found == [(s, (types[s], types[t])) for s, t in graph.adjacency.edge_index.T.tolist()]


def test_edges_are_grouped_once_for_all_labels_that_the_graph_shows():
    graph = typed_graph()
    other = graph.show(graph.shown[:1], graph.y[:1])
    assert relation_graph(graph, 3, RELATIONS) is relation_graph(other, 3, RELATIONS)


def test_a_sample_has_the_edges_of_its_block_by_relation():
    graph = typed_graph(40)
    block = sample_label_graph(graph, torch.tensor([3, 17, 20]), (2, 3), (1, 2)).blocks[0]
    edges = relation_graph(block, 3, RELATIONS)
    assert sum(relation.adjacency.num_edges for relation in edges.relations.values()) == block.adjacency.num_edges
    targets, sources = edges.targets.split(block.nodes), edges.sources.split(block.nodes)
    drawn = {tuple(block.nodes[list(ends)].tolist()) for ends in block.adjacency.edge_index.T.tolist()}
    for (source, target), relation in edges.relations.items():
        for one, other in relation.adjacency.edge_index.T.tolist():
            assert (int(sources[source][one]), int(targets[target][other])) in drawn


def test_an_edge_of_an_unknown_relation_is_refused():
    with pytest.raises(InputError, match="edges from nodes of type 1 to nodes of type 2, and none when the model was"):
        relation_graph(typed_graph(), 3, [pair for pair in RELATIONS if pair != (1, 2)])


def test_a_graph_without_types_is_refused_by_a_model_of_several():
    with pytest.raises(InputError, match="one of 3 node types"):
        relation_graph(replace(typed_graph(), node_type=None), 3, RELATIONS)


def test_a_homogeneous_graph_is_one_relation_with_its_own_adjacency():
    graph = LabelGraph.without_labels(Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3), 2)
    edges = relation_graph(graph, 1, ())
    assert edges.relations[0, 0].adjacency is graph.adjacency
    x = torch.randn(3, 2)
    assert edges.sources.split(x)[0] is x
    assert edges.targets.join([x]) is x
