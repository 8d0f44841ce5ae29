"""Sampling draws what it says: uniformly, the same in every form, and never a seed's own label.

Without a GPU its kernels run in Triton's interpreter: the same code, slowly.
"""

import gc
import math
import threading
import weakref
from collections import Counter
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.graph.plain_sampling import sample_block_by_block
from tests.strategies import label_graphs

from legnn.graph import Adjacency, LabelEdges, LabelGraph, SampledLabelGraph, SamplingOptions, sample_label_graph
from legnn.graph.sampling import borrow_zeros, draw_blocks, full_node_block, sampling_view
from legnn.nn import GCN, SAGE
from legnn.ops.backend import backend
from legnn.ops.sample import cpu, gpu_drawing
from legnn.ops.sample.reference import draw_edges

GPU = torch.cuda.is_available()


def sample_by(implementation: str, *arguments, **options) -> SampledLabelGraph:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGNN_BACKEND", implementation)
        return sample_label_graph(*arguments, **options)


KERNELS = [
    pytest.param((partial(sample_by, "reference"), "cpu"), id="reference"),
    pytest.param((partial(sample_by, "cpu"), "cpu"), id="cpu"),
    pytest.param(
        (partial(sample_by, "gpu"), "cuda" if GPU else "cpu"),
        id="gpu" if GPU else "gpu-interpreted",
        marks=[pytest.mark.gpu] * GPU,
    ),
]
FORMS = [pytest.param((sample_block_by_block, "cpu"), id="plain"), *KERNELS]
FANOUTS = st.lists(st.sampled_from([1, 2, 3, 10, None]), min_size=1, max_size=3)
WORD = st.integers(0, 2**32 - 1)


def to(graph: LabelGraph, device: str) -> LabelGraph:
    among = None if graph.label_adjacency is None else graph.label_adjacency.to(device)
    return LabelGraph(graph.adjacency.to(device), graph.shown.to(device), graph.y.to(device), graph.num_classes, among)


def sampled(form, graph, seeds, fanouts, key, **options) -> SampledLabelGraph:
    sample, device = form
    return sample(to(graph, device), seeds.to(device), fanouts, key, **options)


def random_graph(nodes: int = 40, edges: int = 300, classes: int = 4, *, weighted: bool = False) -> LabelGraph:
    generator = torch.Generator().manual_seed(nodes)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator) + 0.5 if weighted else None
    shown = torch.randperm(nodes, generator=generator)[: nodes // 2]
    y = torch.randint(0, classes, (shown.numel(),), generator=generator)
    return LabelGraph(Adjacency.from_edge_index(edge_index, nodes, weight), shown, y, classes)


def star(neighbors: int, showing: int) -> LabelGraph:
    """Node 0 hears from all others; the last of them show class 0, and node 1, who hears from node 0, shows class 1."""
    others = torch.arange(1, neighbors + 1)
    edge_index = torch.cat([torch.stack([others, torch.zeros_like(others)]), torch.tensor([[0], [1]])], 1)
    shown = torch.arange(neighbors + 1 - showing, neighbors + 1)
    return LabelGraph(Adjacency.from_edge_index(edge_index, neighbors + 1), shown, torch.zeros_like(shown), 2)


class Close(float):
    """A number that equals those next to it: the weights of a row are added in another order on another device."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-5)


def contents(sample: SampledLabelGraph) -> list:
    """Everything in a sample, by the nodes' own ids, so that it does not depend on how they are numbered."""
    found = []
    for block in sample.blocks:
        ids, rows, receives = block.nodes.cpu(), block.adjacency, block.num_nodes
        rowptr, col, edge = rows.rowptr.cpu(), ids[rows.col.cpu().long()], rows.edge.cpu()
        weight = torch.ones(col.numel()) if rows.weight is None else rows.weight.cpu()
        entries = {}
        for r in range(receives):
            mine = slice(int(rowptr[r]), int(rowptr[r + 1]))
            entries[int(ids[r])] = list(
                zip(edge[mine].tolist(), col[mine].tolist(), weight[mine].tolist(), strict=True)
            )
        shown, senders = block.shown.cpu(), block.senders.shown.cpu()
        # the block takes it from `source_labels`; here it is computed from the edges
        label_of = LabelEdges(block.shown, block.y, receives, block.num_classes).label_of
        assert torch.equal(block.to_nodes.label_of, label_of)
        found.append(
            {
                "edges": entries,
                "all": None if block.edge_count is None else dict(zip(entries, block.edge_count.tolist(), strict=True)),
                "nodes": sorted(
                    zip(
                        ids.tolist(),
                        map(Close, block.source_degrees.tolist()),
                        block.source_labels.tolist(),
                        strict=True,
                    )
                ),
                "shown": sorted(zip(ids[shown].tolist(), block.y.tolist(), strict=True)),
                "senders": list(zip(ids[senders].tolist(), block.senders.y.tolist(), strict=True)),
                "counts": block.shown_count.tolist(),
            }
        )
    at_input = sample.at_input
    shown = sample.nodes.cpu()[at_input.shown.cpu()].tolist()
    return [*found, sorted(zip(shown, at_input.y.tolist(), strict=True))]


# every form draws the same


@pytest.mark.parametrize("form", KERNELS)
@given(graph=label_graphs(max_nodes=12), fanouts=FANOUTS, key=st.tuples(WORD, WORD), data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_form_draws_the_same_of_random_label_graphs(form, graph, fanouts, key, data):
    order = data.draw(st.permutations(range(graph.num_nodes)))
    seeds = torch.tensor(order[: data.draw(st.integers(0, len(order)))], dtype=torch.long)
    fast = sampled(form, graph, seeds, fanouts, key, edges=True)
    assert contents(fast) == contents(sample_block_by_block(graph, seeds, fanouts, key, edges=True))
    assert fast.blocks[-1].nodes[: seeds.numel()].tolist() == seeds.tolist(), "the seeds come first, as they are"


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fanouts", [(15, 10, 5), (33, 3), (None, 4), (2, None)])
def test_every_form_draws_the_same_of_a_larger_graph(form, weighted, fanouts):
    graph = random_graph(300, 6000, 7, weighted=weighted)
    seeds = torch.randperm(300)[:50]
    fast = sampled(form, graph, seeds, fanouts, (2**32 - 1, 2**31), edges=True)
    assert contents(fast) == contents(sample_block_by_block(graph, seeds, fanouts, (2**32 - 1, 2**31), edges=True))


@pytest.mark.parametrize("form", KERNELS)
def test_a_node_with_very_many_neighbors_is_drawn_for_as_in_the_plain_form(form):
    graph = star(100_000, 60_000)
    seeds = torch.tensor([0, 99_999])
    fast = sampled(form, graph, seeds, (20, 50), (7, 8), edges=True)
    assert contents(fast) == contents(sample_block_by_block(graph, seeds, (20, 50), (7, 8), edges=True))


@pytest.mark.parametrize("form", FORMS)
def test_indices_of_64_bits_give_the_same_sample(form):
    graph = random_graph(60, 600)
    rows = graph.adjacency
    wide = LabelGraph(
        Adjacency(rows.rowptr.long(), rows.col.long(), None, rows.num_cols), graph.shown, graph.y, graph.num_classes
    )
    seeds = torch.arange(10)
    found = sampled(form, wide, seeds, (4, 3), (1, 2), edges=True)
    assert contents(found) == contents(sample_block_by_block(graph, seeds, (4, 3), (1, 2), edges=True))


@pytest.mark.parametrize("form", FORMS)
def test_seeds_are_numbered_as_they_are_given_and_every_other_node_once_after_them(form):
    graph, seeds = random_graph(), torch.tensor([5, 2, 30])
    for block in sampled(form, graph, seeds, (3, 2), (1, 2)).blocks:
        assert block.nodes[:3].tolist() == seeds.tolist()
        assert block.nodes.unique().numel() == block.nodes.numel()


@pytest.mark.parametrize("implementation", ["reference", "cpu"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_full_node_block_has_all_edges_of_its_targets(implementation, weighted, monkeypatch):
    monkeypatch.setenv("LEGNN_BACKEND", implementation)
    graph, targets = random_graph(weighted=weighted), torch.tensor([7, 3, 39])
    block, whole = full_node_block(graph, targets), graph.adjacency
    assert block.multiplicity is None
    assert block.nodes[:3].tolist() == targets.tolist()
    for row, node in enumerate(targets.tolist()):
        here = slice(*block.adjacency.rowptr[row : row + 2].tolist())
        there = slice(*whole.rowptr[node : node + 2].tolist())
        assert torch.equal(block.nodes[block.adjacency.col[here].long()], whole.col[there].long())
        assert not weighted or torch.equal(block.adjacency.weight[here], whole.weight[there])


def test_the_cpu_has_kernels():
    assert backend("sample", torch.device("cpu")) is cpu


# what is drawn


@pytest.mark.parametrize("form", FORMS)
@given(graph=label_graphs(max_nodes=10, label_edges=False), fanout=st.sampled_from([1, 2, 5, None]), key=WORD)
@settings(max_examples=12, deadline=None)
def test_edges_are_different_edges_of_the_graph_as_many_as_asked_for_or_all(form, graph, fanout, key):
    seeds = torch.arange(graph.num_nodes)
    (block,) = sampled(form, graph, seeds, (fanout,), (key, 5), edges=True).blocks
    rows, whole = block.adjacency, graph.adjacency
    edge = rows.edge.cpu()
    assert edge.unique().numel() == edge.numel()
    assert torch.equal(whole.col.long()[edge], block.nodes.cpu()[rows.col.cpu().long()])
    assert torch.equal(whole.row.long()[edge], block.nodes.cpu()[rows.row.cpu().long()])
    there = whole.rowptr[1:] - whole.rowptr[:-1]
    wanted = there if fanout is None else there.clamp(max=fanout)
    assert (rows.rowptr[1:] - rows.rowptr[:-1]).tolist() == wanted.tolist()


@pytest.mark.parametrize("form", KERNELS)
def test_no_fanouts_give_the_seeds_alone(form):
    sample = sampled(form, random_graph(), torch.tensor([4, 2]), (), (1, 2))
    assert (sample.nodes.tolist(), sample.blocks, sample.at_input.is_empty) == ([4, 2], [], True)


@pytest.mark.parametrize("form", FORMS)
def test_no_seeds_give_an_empty_sample(form):
    graph = random_graph()
    empty = sampled(form, graph, torch.empty(0, dtype=torch.long), (3, 2), (1, 2))
    assert empty.nodes.numel() == empty.num_edges == 0
    assert [block.num_nodes for block in empty.blocks] == [0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fanout", [2, None])
def test_an_isolated_node_and_a_class_nobody_shows_have_nothing_to_draw(form, fanout):
    graph = LabelGraph(
        Adjacency.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3), torch.tensor([1]), torch.tensor([0]), 3
    )
    sample = sampled(form, graph, torch.tensor([2, 0]), (fanout, fanout), (1, 2))
    assert sample.nodes.tolist() == [2, 0]
    assert sample.num_edges == 0


# no node's own label is an input to its prediction


@pytest.mark.parametrize("form", FORMS)
@given(graph=label_graphs(max_nodes=10), key=WORD, count=st.integers(1, 10), fanout=st.sampled_from([2, None]))
@settings(max_examples=12, deadline=None)
def test_no_seed_shows_its_label_nor_sends_to_it(form, graph, key, count, fanout):
    seeds = torch.arange(graph.num_nodes)[:count]
    sample = sampled(form, graph, seeds, (fanout,) * 3, (key, 1))
    label_of = graph.to_nodes.label_of
    visible = label_of.clone()
    visible[seeds] = -1
    for block in sample.blocks:
        ids = block.nodes.cpu()
        assert (block.source_labels.cpu() == visible[ids]).all()
        for edges in (block.to_nodes, block.senders):
            assert (visible[ids[edges.shown.cpu()]] == edges.y.cpu()).all(), "who shows a label is no seed and has it"
        counts = torch.bincount(visible[visible >= 0].long(), minlength=graph.num_classes)
        assert torch.equal(block.shown_count.cpu(), counts)
    assert (visible[sample.nodes.cpu()[sample.at_input.shown.cpu()]] >= 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_label_that_a_later_layer_reads_draws_as_many_as_there_are_to_draw(form):
    graph = random_graph(200, 3000, 5)
    sample = sampled(form, graph, torch.arange(20), (6, 5, 4), (3, 4))
    first, second, last = sample.blocks
    assert last.senders.shown.numel() == 0, "nobody reads what the last layer would make of labels"
    for block, later in ((second, [last]), (first, [second, last])):
        read = torch.cat([one.y for one in later]).unique()
        sent = torch.bincount(block.senders.y, minlength=5).cpu()
        expected = torch.zeros(5, dtype=torch.long)
        expected[read.cpu()] = block.shown_count.cpu()[read.cpu()].clamp(max=6 if block is first else 5)
        assert torch.equal(sent, expected)


# uniform


def assert_uniform(counts: Counter, outcomes: list) -> None:
    assert set(counts) <= set(outcomes)
    assert chisquare([counts[outcome] for outcome in outcomes]).pvalue > 1e-3


@pytest.mark.parametrize(("degree", "fanout"), [(9, 1), (9, 3), (9, 8), (64, 15)])
def test_every_neighbor_and_every_pair_of_them_is_as_likely(degree, fanout):
    rows = 200
    adjacency = Adjacency(
        (torch.arange(rows + 1) * degree).int(), torch.arange(degree).repeat(rows).int(), None, degree
    )
    ones, pairs = Counter(), Counter()
    for key in range(20):
        _, edge = draw_edges(adjacency.rowptr, torch.arange(rows), fanout, (key, 3 * key))
        for row in (edge % degree).view(rows, fanout).tolist():
            ones.update(row)
            pairs.update(combinations(sorted(row), 2))
    assert_uniform(ones, list(range(degree)))
    if fanout > 1:
        assert_uniform(pairs, list(combinations(range(degree), 2)))


@pytest.mark.parametrize("fanout", [1, 3, 7])
def test_over_many_keys_nodes_and_labels_draw_uniformly(fanout):
    # node 0 has eight neighbors, none of which shows a label; node 9 hears of a label that eight others show
    edge_index = torch.tensor([[*range(1, 9), 10], [0] * 8 + [9]])
    shown = torch.arange(10, 18)
    graph = LabelGraph(Adjacency.from_edge_index(edge_index, 18), shown, torch.zeros(8, dtype=torch.long), 2)
    neighbors, senders, pairs = Counter(), Counter(), Counter()
    for key in range(800):
        # node 9 draws node 10, which shows the label: the layer before it draws for that
        blocks = sample_label_graph(graph, torch.tensor([0, 9]), (fanout, 1, 1), (key, 11)).blocks
        rows = blocks[0].adjacency
        neighbors.update(blocks[0].nodes[rows.col[: rows.rowptr[1]].long()].tolist())
        mine = sorted(blocks[0].nodes[blocks[0].senders.shown].tolist())
        senders.update(mine)
        pairs.update(combinations(mine, 2))
    assert_uniform(neighbors, list(range(1, 9)))
    assert_uniform(senders, list(range(10, 18)))
    if fanout > 1:
        assert_uniform(pairs, list(combinations(range(10, 18), 2)))


def test_layers_and_keys_draw_for_themselves():
    graph = star(200, 10)
    first, last = sample_label_graph(graph, torch.tensor([0]), (5, 5), (1, 2), edges=True).blocks
    assert set(first.adjacency.edge[:5].tolist()) != set(last.adjacency.edge.tolist())
    (other,) = sample_label_graph(graph, torch.tensor([0]), (5,), (3, 2), edges=True).blocks
    assert set(other.adjacency.edge.tolist()) != set(first.adjacency.edge[:5].tolist())


@pytest.mark.parametrize("normalize", ["relation", "joint"])
@pytest.mark.parametrize("layer", [GCN, SAGE])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_many_keys_is_the_value_of_the_whole_graph(layer, normalize, weighted):
    graph = random_graph(20, 120, 2, weighted=weighted)
    seeds = torch.tensor([node for node in range(20) if node not in graph.shown.tolist()])
    network = layer(3, 2, normalize=normalize).double()
    x, labels = torch.randn(20, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    with torch.no_grad():
        nodes, new_labels = network(x, labels, graph)
        exact = torch.cat([nodes[seeds], new_labels])
        found = []
        for key in range(300):
            # the seeds show no label, so that only the first of three layers draws for labels
            first, _, last = sample_label_graph(graph, seeds, (2, 3, 3), (key, 5)).blocks
            some, _ = network(x[last.nodes], labels, last)
            _, of_labels = network(x[first.nodes], labels, first)
            of_labels[first.senders.count == 0] = torch.nan
            found.append(torch.cat([some, of_labels]))
    found = torch.stack(found)
    count = torch.isfinite(found).sum(0)
    assert int(count.min()) > 250
    mean = found.nan_to_num().sum(0) / count
    deviation = ((found - mean).nan_to_num() ** 2).sum(0).div(count).sqrt()
    away = (mean - exact).abs() / (deviation / count.sqrt() + 1e-9)
    assert float(away.max()) < 4.5


# what it is drawn in


def test_two_threads_at_once_draw_what_one_draws():
    graph = random_graph(2000, 30_000, 6)
    batches = torch.randperm(2000, generator=torch.Generator().manual_seed(0)).view(20, 100)
    alone = [contents(sample_label_graph(graph, seeds, (8, 5), (1, 2), edges=True)) for seeds in batches]
    together: list = [None] * 20
    begin = threading.Barrier(2, timeout=20)

    def work(first: int) -> None:
        begin.wait()
        for place in range(first, 20, 2):
            together[place] = sample_label_graph(graph, batches[place], (8, 5), (1, 2), edges=True)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [contents(sample) for sample in together] == alone


@pytest.mark.parametrize("form", KERNELS)
def test_scratch_memory_is_clean_after_each_sample_and_goes_with_the_graph(form):
    graph = to(random_graph(), form[1])
    for key in range(3):
        form[0](graph, torch.arange(5, device=form[1]), (3, 2), (key, 1))
        with borrow_zeros(graph.adjacency) as zeros:
            assert not zeros.any()
            memory = weakref.ref(zeros)
    del zeros
    with borrow_zeros(graph.adjacency) as again:
        assert again is memory()
    del again, graph
    gc.collect()
    assert memory() is None


def test_scratch_memory_is_not_used_again_where_something_went_wrong():
    adjacency = random_graph().adjacency

    def fail() -> None:
        with borrow_zeros(adjacency) as zeros:
            zeros.fill_(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with borrow_zeros(adjacency) as zeros:
        assert not zeros.any()


def test_arrays_on_disk_are_sampled_where_they_are(tmp_path):
    graph = random_graph(50, 500)
    rows = graph.adjacency
    mapped = {}
    for name in ("rowptr", "col"):
        np.save(tmp_path / f"{name}.npy", getattr(rows, name).numpy())
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r+")
    on_disk = Adjacency(torch.from_numpy(mapped["rowptr"]), torch.from_numpy(mapped["col"]), None, rows.num_cols)
    there = LabelGraph(on_disk, graph.shown, graph.y, graph.num_classes)
    found = sample_label_graph(there, torch.arange(9), (4, 3), (1, 2), edges=True)
    assert contents(found) == contents(sample_label_graph(graph, torch.arange(9), (4, 3), (1, 2), edges=True))
    assert sampling_view(there, torch.arange(9)).col.data_ptr() == mapped["col"].ctypes.data


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_on_a_gpu_each_layer_synchronizes_once():
    graph = to(random_graph(500, 8000, 5), "cuda")
    seeds = torch.arange(64, device="cuda")
    draw_blocks(graph, seeds, SamplingOptions((5, 4, 3)), (1, 2))
    synchronized = []
    with pytest.MonkeyPatch.context() as patch:
        read_counts = gpu_drawing.read_counts

        def counted(counts):
            synchronized.append(1)
            torch.cuda.set_sync_debug_mode("default")
            try:
                return read_counts(counts)
            finally:
                torch.cuda.set_sync_debug_mode("error")

        patch.setattr(gpu_drawing, "read_counts", counted)
        torch.cuda.set_sync_debug_mode("error")
        try:
            draw_blocks(graph, seeds, SamplingOptions((5, 4, 3)), (1, 3))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert len(synchronized) == 3


def test_parallel_edges_are_drawn_as_separate_edges():
    nobody = torch.empty(0, dtype=torch.long)
    parallel = Adjacency.from_edge_index(torch.tensor([[1, 1, 1, 2], [0, 0, 0, 0]]), 3)
    graph = LabelGraph(parallel, nobody, nobody, 2)
    drawn = Counter()
    for key in range(800):
        block = sample_label_graph(graph, torch.tensor([0]), (1,), (key, 5), edges=True).blocks[0]
        drawn[int(block.adjacency.edge)] += 1
    assert_uniform(drawn, [0, 1, 2, 3])
    block = full_node_block(graph, torch.tensor([0]))
    assert block.nodes[block.adjacency.col.long()].tolist() == [1, 1, 1, 2]
