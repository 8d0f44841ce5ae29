"""The speed benchmark: its graphs, its peers, and one run through all of it."""

import json

import pytest
import torch
from benchmarks.measure import measure, times_in_turns
from benchmarks.peers import HeteroLEGNN, VanillaPyG, build_peer, relations
from benchmarks.speed import BACKBONES, Case, main, settings_for
from benchmarks.speed_report import ratios
from benchmarks.synthetic import SIZES, skewed_graph, workload

from benchmarks import profile
from legnn.nn import LEGNN

CPU = torch.device("cpu")
KEYS = {"implementation", "backbone", "labels", "phase", "milliseconds", "peak_gib"}


@pytest.mark.parametrize("name", ["tiny", "cora", "small", "arxiv"])
def test_a_synthetic_graph_is_symmetric_and_has_the_edges_asked_for(name):
    size = SIZES[name]
    edge_index = skewed_graph(size.nodes, size.edges)
    assert edge_index.shape == (2, size.edges)
    source, target = edge_index
    keys = source * size.nodes + target
    assert bool((keys[1:] > keys[:-1]).all()), "sorted, and no edge twice"
    assert torch.equal(torch.sort(target * size.nodes + source).values, keys), "symmetric"
    assert bool((source != target).all()), "no self-loop"
    assert int(edge_index.min()) >= 0
    assert int(edge_index.max()) < size.nodes


def test_the_synthetic_graph_has_the_skew_of_ogbn_arxiv():
    size = SIZES["arxiv"]
    degree = torch.bincount(skewed_graph(size.nodes, size.edges)[0], minlength=size.nodes)
    assert 12_000 < int(degree.max()) < 14_500
    assert 5 <= int(degree.median()) <= 7
    assert 80 < float(torch.quantile(degree.float(), 0.99)) < 130


def test_the_heads_of_every_size_share_its_channels():
    assert all(size.channels % size.heads == 0 for size in SIZES.values())


def test_a_seed_gives_one_graph():
    assert torch.equal(skewed_graph(500, 3000, seed=1), skewed_graph(500, 3000, seed=1))
    assert not torch.equal(skewed_graph(500, 3000, seed=1), skewed_graph(500, 3000, seed=2))


@pytest.mark.parametrize(("nodes", "edges"), [(10, 11), (10, 8), (10, 80)])
def test_a_graph_that_cannot_be_is_refused(nodes, edges):
    with pytest.raises(ValueError, match="cannot be both directions"):
        skewed_graph(nodes, edges)


def test_the_small_size_is_prepared_as_the_library_prepares_graphs():
    work = workload("small")
    assert (work.nodes, work.edges, work.features, work.classes) == (8_467, 122_517, 128, 40)
    source, target = work.data.adjacency.edge_index
    loops = source == target
    assert int(loops.sum()) == work.nodes
    assert work.train / work.nodes == pytest.approx(0.54, abs=0.02)


def test_any_other_name_is_a_data_set():
    work = workload("data:digits")
    assert work.channels == 540
    assert work.classes == 10


def test_what_is_compared_is_timed_in_turns():
    called = []
    times = times_in_turns([lambda: called.append("a"), lambda: called.append("b")], CPU, repeats=2, warmup=1)
    assert "".join(called) == "ab" + "abab"
    assert [len(one) for one in times] == [2, 2]


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("labels", ["vanilla", "enhanced"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_peer_trains_and_predicts(backbone, labels, autocast):
    work = workload("tiny")
    runner = build_peer(work.data, settings_for(Case("peer", backbone, labels), work), CPU, autocast=autocast)
    losses = [float(runner.train_step()) for _ in range(30)]
    logits = runner.inference()
    assert logits.shape == (work.nodes, work.classes)
    assert bool(logits.isfinite().all())
    assert sum(losses[-5:]) < sum(losses[:5])


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_weight_of_a_peer_has_a_finite_gradient(backbone):
    work = workload("tiny")
    data, settings = work.data, settings_for(Case("peer", backbone, "enhanced"), work)
    model = HeteroLEGNN(work.features, work.classes, settings.model)
    shown = data.train_mask.nonzero().flatten()[::2]
    out = model(data.x, relations(data.adjacency.edge_index, shown, data.y[shown]))
    out.logsumexp(1).sum().backward()
    assert out.shape == (work.nodes, work.classes)
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert bool(weight.grad.isfinite().all()), name


@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_vanilla_peer_is_as_large_as_ours(backbone):
    work = workload("tiny")
    settings = settings_for(Case("peer", backbone, "vanilla"), work).model
    peer = VanillaPyG(work.features, work.classes, settings)
    ours = LEGNN(work.features, work.classes, settings)
    assert sum(weight.numel() for weight in peer.parameters()) == ours.num_parameters()


def test_what_runs_out_of_memory_is_noted_and_what_fails_otherwise_fails():
    def too_large():
        raise torch.OutOfMemoryError("CUDA out of memory")

    def wrong():
        raise RuntimeError("shapes do not match")

    found = measure(too_large, CPU, repeats=1, warmup=1)
    assert (found.milliseconds, found.peak_gib, found.note) == (None, None, "out of memory")
    with pytest.raises(RuntimeError, match="shapes"):
        measure(wrong, CPU, repeats=1, warmup=0)


def test_memory_on_the_cpu_is_what_the_process_grows_by():
    found = measure(lambda: torch.ones(2**26), CPU, repeats=2, warmup=1)
    if found.peak_gib is None:
        pytest.skip("this system does not tell the peak of a process")
    assert 0.2 < found.peak_gib < 0.4


def _row(implementation, precision, milliseconds, peak, labels="enhanced"):
    row = {"implementation": implementation, "backbone": "gat", "labels": labels, "precision": precision}
    return [{**row, "phase": phase, "milliseconds": milliseconds, "peak_gib": peak} for phase in ("train", "inference")]


def test_half_precision_is_compared_with_both_of_the_peer():
    rows = [
        *_row("legnn", "tf32", 20, 4),
        *_row("legnn", "bf16", 10, 2),
        *_row("pyg-hetero", "tf32", 160, None),
        *_row("pyg-hetero", "bf16", 120, 30),
        *_row("legnn", "bf16", 8, 2, labels="vanilla"),
    ]
    found = {(one.precision, one.of, one.figure): one.train for one in ratios(rows)}
    assert found == {
        ("tf32", "HeteroConv GATConv / enhanced", "milliseconds"): 8,
        ("bf16", "HeteroConv GATConv (tf32) / enhanced", "milliseconds"): 16,
        ("bf16", "HeteroConv GATConv (bf16) / enhanced", "milliseconds"): 12,
        ("bf16", "HeteroConv GATConv (bf16) / enhanced", "peak_gib"): 15,
        ("bf16", "enhanced / vanilla", "milliseconds"): 1.25,
        ("bf16", "enhanced / vanilla", "peak_gib"): 1,
    }


def test_one_run_measures_everything_and_writes_it(tmp_path, capsys):
    file = tmp_path / "rows.json"
    rows = main(["--size", "tiny", "--device", "cpu", "--repeats", "1", "--json", str(file)])
    assert json.loads(file.read_text()) == rows
    assert all(row.keys() >= KEYS for row in rows)
    found = {(row["implementation"], row["backbone"], row["labels"]) for row in rows}
    for backbone in BACKBONES:
        assert {("legnn", backbone, "vanilla"), ("legnn", backbone, "enhanced"), ("pyg", backbone, "vanilla")} <= found
    assert {backbone for implementation, backbone, _ in found if implementation == "pyg-hetero"} == {"sage", "gat"}
    assert len(rows) == 2 * len(found), "both phases, each once"
    assert all(row["milliseconds"] > 0 for row in rows)
    printed = capsys.readouterr().out
    for words in (
        "tiny, one training step",
        "HeteroConv GATConv / enhanced",
        "SAGEConv's",
        "torch",
    ):
        assert words in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--precision", "tf32"], "tf32 is a precision of GPUs"),
        (["--repeats", "-1"], "1 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_the_profile_names_the_operations_of_a_step(capsys):
    lines = profile.main(["--size", "tiny", "--backbone", "sage"])
    names = [name for name, *_ in lines]
    assert "_ApplyOperation" in names
    assert "aten::mm" in names
    assert all(milliseconds > 0 for _, milliseconds, _ in lines)
    assert "100 %" in capsys.readouterr().out
