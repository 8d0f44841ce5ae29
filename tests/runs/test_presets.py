"""Runs with the presets `paper` and `published`: on every kind of source, in full and mini-batches."""

import pytest
import torch
from tests.graphs import small_data, table_folder
from tests.named import arguments, named
from tests.training.mini_batches import CPU
from tests.typed_graphs import small_hetero

import legnn
from legnn.cli.training import new_folder
from legnn.config import GraphFacts, Settings
from legnn.errors import InputError
from legnn.nn import LEGNN
from legnn.runs import RunFolder
from legnn.training import LayerWise, Task

QUICK = {"epochs": 3, "hidden": 12, "device": "cpu"}


@pytest.mark.parametrize("preset", ["paper", "published"])
@pytest.mark.parametrize(
    "options", [{}, {"batch": 8, "as_train": True, "pseudo_label_threshold": 0.01}], ids=["full", "batches"]
)
def test_a_run_is_repeated_bit_for_bit_by_its_settings(preset, options, tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    given = {"backbone": "gat", **QUICK, **options}
    first = legnn.train(tables, **arguments(**given), preset=preset, out=tmp_path / "first")
    again = legnn.train(tables, settings=Settings.from_yaml(tmp_path / "first" / "settings.yaml"))
    assert again.settings == first.settings
    for name, value in first.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name
    opened = legnn.Run.open(tmp_path / "first")
    assert opened.predict().equals(first.predict())


def test_the_graph_is_loaded_as_the_preset_says_and_the_run_keeps_it(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    run = legnn.train(tables, **arguments(**QUICK), preset="published", out=tmp_path / "run")
    data = RunFolder.open(tmp_path / "run").settings.data
    assert (data.remove_duplicates, data.self_loops) == (False, True)
    given = legnn.train(tables, **arguments(**QUICK, self_loops=False), preset="published")
    assert given.settings.data.self_loops is False
    assert run.settings.model.backbone == "gat"


def test_several_node_types_have_the_form_of_ogbn_mag_and_one_projection():
    run = legnn.train(small_hetero(), **arguments(**QUICK), preset="published")
    assert run.settings.model.published.target_map
    assert run.settings.train.batch == 370
    assert run.model.encoder.project.weight.size(1) == run.model.in_channels == 5


def test_a_prepared_folder_stays_as_it_is_unless_something_else_is_given(tmp_path):
    tables = table_folder(tmp_path / "tables", small_data())
    graph = legnn.prepare_folder(tables, tmp_path / "prepared")
    for source in (tmp_path / "prepared", graph):
        run = legnn.train(source, **arguments(**QUICK), preset="published")
        assert run.settings.data.remove_duplicates is True, "as it was prepared"
        with pytest.raises(InputError, match=r"remove_duplicates of .* is True, as it was prepared"):
            legnn.train(source, **arguments(**QUICK, remove_duplicates=False), preset="published")


def test_the_folder_is_named_by_the_backbone_of_the_preset(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert new_folder("digits", Settings(preset="published")).name == "digits-gat"
    assert new_folder("digits", Settings(preset="published").override(named(backbone="gcn"))).name == "digits-gcn"
    assert new_folder("digits", Settings(preset="paper")).name == "digits-paper"


@pytest.mark.parametrize("source", ["ogbn-arxiv", "ogbn-mag"])
def test_inference_in_chunks_is_that_of_the_whole_graph(source):
    graph = legnn.load(small_data())
    facts = GraphFacts(num_train=9, num_classes=3, counts_features=False, has_label_edges=False)
    settings = Settings(preset="published").override(named(source=source, hidden=24)).resolve(facts)
    torch.manual_seed(0)
    model, task = LEGNN(graph.x.size(1), 3, settings.model), Task.from_graph(graph, CPU)
    for name, buffer in model.named_buffers():
        if "running" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    nodes = torch.arange(graph.num_nodes)
    whole, parts = (
        LayerWise(model, task, CPU, torch.float32, chunk_size=size).logits(task.train, nodes) for size in (None, 10)
    )
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-5)
