"""Random small graphs: directed and weighted ones, with isolated nodes, parallel edges, classes nobody shows."""

import torch
from hypothesis import strategies as st

from legnn.graph import Adjacency, LabelGraph


@st.composite
def label_graphs(
    draw: st.DrawFn, max_nodes: int = 7, max_classes: int = 4, label_edges: bool = True, weighted: bool = True
) -> LabelGraph:
    M = draw(st.integers(1, max_nodes))
    C = draw(st.integers(1, max_classes))
    node = st.integers(0, M - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * M))
    if draw(st.booleans()):
        edges = edges + [(target, source) for source, target in edges]
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    weight = None
    if weighted and draw(st.booleans()):
        values = draw(st.lists(st.sampled_from([0.25, 1.0, 2.0, 3.5]), min_size=len(edges), max_size=len(edges)))
        weight = torch.tensor(values, dtype=torch.float64)
    shown = sorted(draw(st.sets(node)))
    y = draw(st.lists(st.integers(0, C - 1), min_size=len(shown), max_size=len(shown)))
    among = None
    if label_edges and draw(st.booleans()):
        cells = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 1.5]), min_size=C * C, max_size=C * C))
        among = torch.tensor(cells, dtype=torch.float64).view(C, C)
    return LabelGraph(
        Adjacency.from_edge_index(edge_index, M, weight),
        torch.tensor(shown, dtype=torch.long),
        torch.tensor(y, dtype=torch.long),
        C,
        among,
    )
