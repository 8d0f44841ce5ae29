"""What is drawn into fixed sizes is the padded sample, to the bit, or known to be none.

Without a GPU its kernels run in Triton's interpreter: the same code, slowly.
"""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.test_sampling import random_graph, star, to
from tests.strategies import label_graphs

from legnn.graph import LabelGraph, SampledLabelGraph, sample_label_graph
from legnn.graph.padded_sampling import draw_padded_sample, has_room, sample_padded
from legnn.graph.padding import PaddedBlock, SampleSizes, pad_sample
from legnn.graph.sampling import rows_of
from legnn.ops.sample.triton_kernels import TritonSampler
from legnn.training.batches import tensors_of

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
pytestmark = [pytest.mark.gpu] * GPU
WORD = st.integers(0, 2**32 - 1)


def on_device(graph: LabelGraph) -> LabelGraph:
    moved = to(graph, DEVICE)
    return moved if graph.node_type is None else replace(moved, node_type=graph.node_type.to(DEVICE))


def sampled_and_sizes(graph: LabelGraph, seeds, fanouts, key, factor=1.3) -> tuple[SampledLabelGraph, SampleSizes]:
    sample = sample_label_graph(graph, seeds, fanouts, key, sampler=TritonSampler)
    return sample, SampleSizes.above([SampleSizes.of(sample)], factor)


def assert_equal(one: SampledLabelGraph, other: SampledLabelGraph) -> None:
    assert all(isinstance(block, PaddedBlock) for block in one.blocks)
    expected, found = tensors_of(other), tensors_of(one)
    assert [(a.dtype, a.shape) for a in expected] == [(b.dtype, b.shape) for b in found]
    assert all(map(torch.equal, expected, found))
    for mine, theirs in zip(one.blocks, other.blocks, strict=True):
        for field in ("num_cols", "fanout", "num_rows"):
            assert getattr(mine.adjacency, field) == getattr(theirs.adjacency, field)


def assert_drawn_as_padded(graph: LabelGraph, seeds, fanouts, key, factor=1.3) -> None:
    graph, seeds = on_device(graph), seeds.to(DEVICE)
    sample, sizes = sampled_and_sizes(graph, seeds, fanouts, key, factor)
    found = sample_padded(graph, seeds, fanouts, key, [sizes])
    assert found is not None
    assert_equal(found, pad_sample(sample, sizes))


@given(
    graph=label_graphs(max_nodes=12),
    fanouts=st.lists(st.sampled_from([1, 2, 3, 10]), min_size=1, max_size=3),
    key=st.tuples(WORD, WORD),
    factor=st.floats(1.0, 3.0),
    typed=st.booleans(),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_random_label_graphs_are_drawn_as_they_are_padded(graph, fanouts, key, factor, typed, data):
    order = data.draw(st.permutations(range(graph.num_nodes)))
    seeds = torch.tensor(order[: data.draw(st.integers(1, len(order)))], dtype=torch.long)
    if typed:
        graph = replace(graph, node_type=torch.arange(graph.num_nodes) % 3)
    assert_drawn_as_padded(graph.hide(seeds), seeds, fanouts, key, factor)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fanouts", [(15, 10, 5), (33, 3), (2,), (1, 1, 1, 1)])
@pytest.mark.parametrize("shows", [False, True])
def test_a_larger_graph_is_drawn_as_it_is_padded(weighted, fanouts, shows):
    graph = random_graph(1100, 3000, 7, weighted=weighted)
    seeds = torch.randperm(1100)[:50]
    graph = graph.hide(seeds) if shows else graph.show(graph.shown[:0], graph.y[:0])
    assert_drawn_as_padded(graph, seeds, fanouts, (2**32 - 1, 2**31))


def test_a_node_with_very_many_neighbors_and_a_class_of_very_many_nodes_are_drawn_for():
    graph = star(100_000, 60_000)
    seeds = torch.tensor([0, 3])
    assert_drawn_as_padded(graph.hide(seeds), seeds, (20, 50), (7, 8))


def test_indices_of_64_bits_and_label_label_edges_give_the_same_sample():
    graph = random_graph(60, 600)
    rows = graph.adjacency
    wide = replace(rows, rowptr=rows.rowptr.long(), col=rows.col.long())
    graph = replace(graph, adjacency=wide, label_adjacency=torch.ones(4, 4)).hide(torch.arange(10))
    assert_drawn_as_padded(graph, torch.arange(10), (4, 3), (1, 2))


def test_a_graph_without_edges_gives_padding_alone():
    graph = random_graph(5, 0, 3)
    seeds = torch.tensor([4, 1])
    assert_drawn_as_padded(graph.hide(seeds), seeds, (3, 2), (1, 2))


# seeds show no label: the last layer reads none, and none is drawn for before the first
KINDS = [
    *((block, kind) for block in (0, 1, 2) for kind in ("added", "edges")),
    (0, "senders"),
    (0, "shown"),
    (1, "shown"),
]


@pytest.mark.parametrize(("block", "kind"), [*KINDS, (0, "at_input")])
def test_what_does_not_fit_is_known_and_leaves_no_trace(block, kind):
    graph = on_device(random_graph(300, 2000, 7))
    seeds = torch.arange(20, device=DEVICE)
    graph = graph.hide(seeds)
    sample, sizes = sampled_and_sizes(graph, seeds, (6, 5, 4), (1, 2))
    of = SampleSizes.of(sample)
    if kind == "at_input":
        small = sizes._replace(shown=of.shown - 1)
    else:
        room = getattr(of.blocks[block], kind)
        assert room > 0
        # one padding node is needed
        tight = sizes.blocks[block]._replace(**{kind: room if kind == "added" else room - 1})
        small = sizes._replace(blocks=(*sizes.blocks[:block], tight, *sizes.blocks[block + 1 :]))
    scratch = torch.zeros(300, dtype=torch.int32, device=DEVICE)
    key = torch.tensor([1, 2], device=DEVICE)
    drawn = draw_padded_sample(graph, rows_of(graph), seeds, (6, 5, 4), key, small, scratch)
    assert not has_room(small, drawn.counts.tolist())
    assert not scratch.any()
    found = sample_padded(graph, seeds, (6, 5, 4), (1, 2), [small, sizes])
    assert_equal(found, pad_sample(sample, sizes))
    assert sample_padded(graph, seeds, (6, 5, 4), (1, 2), [small]) is None


def test_a_tiny_room_is_not_written_past():
    graph = on_device(random_graph(300, 2000, 7))
    seeds = torch.arange(20, device=DEVICE)
    graph = graph.hide(seeds)
    _, sizes = sampled_and_sizes(graph, seeds, (6, 5, 4), (1, 2))
    tiny = SampleSizes(tuple(block._replace(added=2, edges=3, senders=1, shown=1) for block in sizes.blocks), 1)
    scratch = torch.zeros(300, dtype=torch.int32, device=DEVICE)
    drawn = draw_padded_sample(
        graph, rows_of(graph), seeds, (6, 5, 4), torch.tensor([1, 2], device=DEVICE), tiny, scratch
    )
    assert not has_room(tiny, drawn.counts.tolist())
    assert not scratch.any()
    assert drawn.graph.nodes.numel() == 26


def test_a_seed_that_shows_its_label_is_found():
    graph = on_device(random_graph(40, 300, 4))
    seeds = graph.shown[:1]
    hidden = graph.hide(seeds)
    _, sizes = sampled_and_sizes(graph, seeds, (3, 2), (1, 2))
    assert sample_padded(graph, seeds, (3, 2), (1, 2), [sizes]) is None
    assert sample_padded(hidden, seeds, (3, 2), (1, 2), [sizes]) is not None


@pytest.mark.skipif(not GPU, reason="needs a CUDA device")
def test_on_a_gpu_a_captured_sample_is_drawn_again_for_other_seeds_keys_and_labels():
    graph = on_device(random_graph(3000, 20_000, 7))
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for word in range(4):
        seeds = torch.randperm(3000, generator=generator)[:200].to(DEVICE)
        shown = torch.randperm(3000, generator=generator)[:900].to(DEVICE)
        shown = shown[~torch.isin(shown, seeds)][:700]
        y = torch.randint(0, 7, (700,), generator=generator).to(DEVICE)
        inputs.append((graph.show(shown, y), seeds, (word, 2**32 - 1 - word)))
    samples = [sample_label_graph(*one[:2], (6, 5, 4), one[2], sampler=TritonSampler) for one in inputs]
    sizes = SampleSizes.above([SampleSizes.of(sample) for sample in samples], 1.1)
    fixed, seeds, key = rows_of(inputs[0][0]), inputs[0][1].clone(), torch.tensor([0, 0], device=DEVICE)
    fixed = replace(fixed, **{name: getattr(fixed, name).clone() for name in ("label_of", "class_rowptr", "class_col")})
    scratch = torch.zeros(3000, dtype=torch.int32, device=DEVICE)
    draw_padded_sample(graph, fixed, seeds, (6, 5, 4), key, sizes, scratch)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        drawn = draw_padded_sample(graph, fixed, seeds, (6, 5, 4), key, sizes, scratch)
    for (labelled, own, words), sample in zip(inputs, samples, strict=True):
        rows = rows_of(labelled)
        for name in ("label_of", "class_rowptr", "class_col"):
            getattr(fixed, name).copy_(getattr(rows, name))
        seeds.copy_(own)
        key.copy_(torch.tensor(words))
        captured.replay()
        assert has_room(sizes, drawn.counts.tolist())
        assert_equal(drawn.graph, pad_sample(sample, sizes))
