"""Every table and figure of the paper, on a graph of a user's own and on real data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.experiments.training import train_planned
from tests.graphs import small_data, table_folder

from legnn.errors import InputError
from legnn.experiments import EXPERIMENTS, Plan, Request
from legnn.experiments.paper_values import DATA_SETS, HOMOPHILY
from legnn.experiments.reports import write_report
from legnn.experiments.scores import run_rows

QUICK = {"train.epochs": 3, "model.attention.heads": 2, "model.layers": 2}
DRAWN = {"training-confidence", "pseudo-labels", "probability-bands", "synthetic", "visualization"}
DRAWN |= {"confidence-ablation", "cost", "sensitivity"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph in which confident predictions come early, so that there are pseudo labels to draw."""
    data = small_data(nodes=80)
    data.x = data.x * 8
    return table_folder(tmp_path_factory.mktemp("graph") / "small", data)


def made(folder, experiment, **changes):
    request = {
        "data": (str(folder),),
        "backbones": ("gcn",),
        "seeds": 2,
        "out": folder.parent / "out",
        "settings": QUICK,
    }
    varied = {setting for one in experiment.variants(str(folder)) for setting in one.settings}
    chosen = {setting: value for setting, value in {**QUICK, "model.hidden": 8}.items() if setting not in varied}
    plan = Plan(experiment, Request(**{**request, "settings": chosen, **changes}))
    for run in plan.missing():
        outcome = train_planned(run, plan.request.out)
        assert outcome.state == "finished", outcome.error
    assert plan.missing() == []
    return plan, plan.experiment.make(plan)


# TF32 is a precision of GPUs
@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.data and name != "precision"])
def test_every_table_and_figure_is_made_on_a_graph_of_ones_own(folder, name):
    plan, report = made(folder, EXPERIMENTS[name])
    files = write_report(plan, report, "legnn reproduce …")
    kinds = [file.suffix for file in files]
    assert kinds == ([".md", ".csv", ".png"] if name in DRAWN else [".md", ".csv"])
    text = files[0].read_text()
    assert plan.experiment.title in text
    assert "(paper)" not in text, "a figure of the paper is no one's own graph's"
    assert len(pd.read_csv(files[1])) == len(report.values) > 0
    if name in DRAWN:
        from matplotlib.image import imread

        assert imread(files[2])[..., :3].std() > 0.01, "the picture is blank"


def test_every_figure_and_table_is_listed_once():
    assert {name for name, one in EXPERIMENTS.items() if one.kind == "figure"} == DRAWN


@pytest.mark.parametrize("name", ["dropout-lr", "hyperparameters"])
def test_the_tables_of_the_appendix_need_no_data(tmp_path, name):
    plan = Plan(EXPERIMENTS[name], Request(data=(), backbones=(), seeds=1, out=tmp_path))
    report = plan.experiment.make(plan)
    assert set(report.values["data"]) == {"ogbn-arxiv", "ogbn-mag", "oag-venue"}
    assert len(report.values) == (36 if name == "dropout-lr" else 3)


def test_means_and_differences_are_those_of_the_run_folders(folder):
    plan, report = made(folder, EXPERIMENTS["label-usage"])
    rows = run_rows(plan)
    mean = rows[rows["method"] == "LEGNN"]["test_accuracy"].mean()
    base = rows[rows["method"] == "vanilla"]["test_accuracy"].mean()
    assert report.tables["Test accuracy"]["LEGNN"][0].startswith(f"{mean:.4f} ± ")
    differences = report.tables["Difference of accuracy to vanilla, paired over seeds"].set_index("method")
    assert float(differences.loc["LEGNN", "difference"]) == pytest.approx(mean - base, abs=6e-5)


def precision_on_the_cpu():
    """`precision` with fp32 in the place of TF32, which needs a GPU."""
    experiment = EXPERIMENTS["precision"]

    def variants(source):
        return [
            one._replace(
                name=one.name.replace("tf32", "fp32"),
                settings={name: "fp32" if value == "tf32" else value for name, value in one.settings.items()},
            )
            for one in experiment.variants(source)
        ]

    return replace(experiment, variants=variants)


def test_precisions_are_compared_for_every_way_of_using_labels(folder):
    plan, report = made(folder, precision_on_the_cpu())
    rows = run_rows(plan)
    usages = ["vanilla", "concat", "addition", "LEGNN", "LEGNN + AS-Train"]
    means = rows.groupby("method")["test_accuracy"].mean()
    table = report.tables["Test accuracy"].set_index("labels")
    assert list(table.index) == usages
    over = report.tables["Difference of test accuracy over data sets, bf16 − fp32"].set_index("labels")
    assert list(over.index) == [*usages, "all"]
    gains = [means[f"{usage}, bf16"] - means[f"{usage}, fp32"] for usage in usages]
    for usage, gain in zip(usages, gains, strict=True):
        assert float(table.loc[usage, "difference"]) == pytest.approx(gain, abs=6e-5)
        assert float(over.loc[usage, "difference"]) == pytest.approx(gain, abs=6e-5)
    assert float(over.loc["all", "difference"]) == pytest.approx(np.mean(gains), abs=6e-5)


def test_precisions_of_an_earlier_report_count_as_further_data_sets(folder, tmp_path):
    _, report = made(folder, precision_on_the_cpu())
    earlier = tmp_path / "earlier.csv"
    report.values.assign(data="another").to_csv(earlier, index=False)
    _, both = made(folder, precision_on_the_cpu(), compare_with=(earlier,))
    for name, alone in report.tables.items():
        if name.startswith("Test"):
            assert list(both.tables[name]["data"].unique()) == ["another", folder.name]
            continue
        found = both.tables[name]
        assert list(found["difference"]) == list(alone["difference"]), "the same figures twice"
        assert all(won.endswith("of 2") for won in found["data sets won"])
        # two equal differences leave no doubt
        first, last = found["95 % interval"][0].split(" to ")
        assert first == last == found["difference"][0]
    report.values.drop(columns="group").to_csv(earlier, index=False)
    with pytest.raises(InputError, match="is no report of scores: it has no column 'group'"):
        made(folder, precision_on_the_cpu(), compare_with=(earlier,))


def test_without_selection_a_training_node_sees_its_own_label(folder):
    """The paper's train column rises without selection; with the own label hidden it does not."""
    _, report = made(
        folder,
        EXPERIMENTS["node-selection"],
        settings={"train.epochs": 60, "model.hidden": 16, "model.layers": 2, "model.label_at_input": True},
    )
    scores = report.values.groupby(["method", "nodes"])["accuracy"].mean()
    shown, hidden = (scores["without selection", f"train, own label {what}"] for what in ("shown", "hidden"))
    assert shown > hidden
    assert shown == pytest.approx(1.0)


def test_synthetic_graphs_of_any_graph_take_the_papers_fractions(folder):
    _, report = made(folder, EXPERIMENTS["synthetic-graphs"])
    assert len(report.values) == 11
    assert (np.diff(report.values["homophily"]) < 0).all()


def test_statistics_and_homophilies_of_ogbn_arxiv_are_the_papers(real_data, tmp_path):
    for name in ("datasets", "synthetic-graphs"):
        plan = Plan(EXPERIMENTS[name], Request(data=("ogbn-arxiv",), backbones=(), seeds=1, out=tmp_path))
        values = plan.experiment.make(plan).values
        if name == "datasets":
            paper, found = DATA_SETS["ogbn-arxiv"], values.iloc[0]
            assert (found["nodes"], found["edges"], found["classes"]) == (paper.nodes, paper.edges, paper.classes)
            assert f"{found['homophily']:.4f}" == f"{paper.homophily:.4f}"
        else:
            found = dict(zip(values["S"], values["homophily"], strict=True))
            assert {edges: round(found[edges], 4) for edges in HOMOPHILY} == HOMOPHILY
