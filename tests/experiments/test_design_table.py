"""The comparison of designs: its tables, tests, ranks and picture, on tiny runs and on scores made up for it."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.image import imread
from tests.experiments.training import train_planned
from tests.graphs import small_data, table_folder
from tests.named import named

from legnn.analysis.ranks import critical_difference
from legnn.errors import InputError
from legnn.experiments import EXPERIMENTS, Experiment, Plan, Request, Variant
from legnn.experiments.design_table import design_cost, designs, rank_designs
from legnn.experiments.reports import write_report
from legnn.experiments.variants import AS_TRAIN, LEGNN, VANILLA, other_model

SPREAD = other_model("label propagation", "label_propagation")._replace(
    candidates=({"model.label_propagation.steps": 5},)
)


def variants(source: str) -> tuple[Variant, ...]:
    """A design that runs on the second graph alone, as one for several node types would."""
    extra = (VANILLA,) if Path(source).name == "second" else ()
    return SPREAD, LEGNN, AS_TRAIN, *extra


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Plan:
    place = tmp_path_factory.mktemp("designs")
    folders = [str(table_folder(place / name, small_data(seed=k))) for k, name in enumerate(("first", "second"))]
    own = Experiment(name="designs", kind="table", title="Designs", variants=variants, make=designs)
    given = named(epochs=2, hidden=4, layers=2, device="cpu")
    plan = Plan(own, Request(data=folders, backbones=("gcn",), seeds=2, out=place / "out", settings=given, trials=2))
    while missing := plan.missing():
        for run in missing:
            assert train_planned(run, plan.request.out).state == "finished"
    return plan


@pytest.fixture(scope="module")
def report(plan):
    return designs(plan)


def test_a_row_is_a_design_and_a_column_a_data_set(plan, report):
    for name in ("accuracy", "macro-F1"):
        table = report.tables[f"Test {name}"].set_index("design")
        assert table.columns.tolist() == ["first", "second"]
        assert table.index.tolist() == ["label propagation", "LEGNN", "LEGNN + AS-Train", "vanilla"]
        assert table.loc["vanilla"].tolist()[0] == "", "it did not run there"
        assert " ± " in table.loc["LEGNN"].tolist()[0]
    mean = report.values.groupby(["method", "data"])["test_accuracy"].mean()
    first = plan.request.data[0]
    assert (
        report.tables["Test accuracy"]
        .set_index("design")
        .loc["LEGNN", "first"]
        .startswith(f"{mean['LEGNN', first]:.4f}")
    )


def test_costs_say_which_of_how_many_settings_was_chosen(plan, report):
    cost = report.tables["Cost"].set_index(["design", "data"])
    first = Path(plan.request.data[0]).name
    assert cost.loc[("label propagation", first), "setting"] == "1 of 1"
    assert cost.loc[("LEGNN", first), "setting"] in ("1 of 2", "2 of 2")
    assert cost.loc[("label propagation", first), "epochs"] == 1
    assert cost.loc[("LEGNN", first), "epochs"] == 2
    runs = report.values[(report.values["data"] == plan.request.data[0]) & (report.values["method"] == "LEGNN")]
    assert cost.loc[("LEGNN", first), "s an epoch"] == pytest.approx(runs["seconds"].sum() / runs["epochs"].sum())
    assert cost.loc[("LEGNN", first), "parameters"] == runs["parameters"].iloc[0] > 0


@pytest.mark.parametrize("base", ["LEGNN", "LEGNN + AS-Train"])
def test_every_other_design_is_compared_with_legnn_where_both_ran(report, base):
    table = report.tables[f"Difference of test accuracy to {base}"].set_index("design")
    assert base not in table.index
    assert len(table) == 3
    assert table.loc["vanilla", "pairs won"].endswith("of 2")
    assert table.loc["label propagation", "pairs won"].endswith("of 4")


def test_designs_that_ran_everywhere_are_ranked_and_the_picture_is_written(plan, report):
    table = report.tables["Mean ranks of the designs that ran on all data sets"]
    assert set(table["design"]) == {"label propagation", "LEGNN", "LEGNN + AS-Train"}
    assert table["mean rank"].mean() == pytest.approx(2, abs=0.01)
    assert any("1 data set and 4 designs" in note for note in report.notes)
    files = write_report(plan, report, "legnn reproduce designs")
    assert [file.suffix for file in files] == [".md", ".csv", ".png"]
    assert imread(files[2])[..., :3].std() > 0.01
    assert len(pd.read_csv(files[1])) == 2 * (3 + 4)


def test_one_data_set_has_no_ranks_and_no_picture(plan):
    request = plan.request
    one = Plan(plan.experiment, Request(**{**vars(request), "data": request.data[:1]}))
    found = designs(one)
    assert found.figure is None
    assert not [heading for heading in found.tables if "ranks" in heading]


def scores(table: dict[str, list[float | None]]) -> pd.DataFrame:
    """Rows as of runs, from the scores of each design on each data set."""
    return pd.DataFrame(
        [
            {"column": f"data {k}", "method": name, "test_accuracy": value}
            for name, values in table.items()
            for k, value in enumerate(values)
            if value is not None
        ]
    )


def test_ranks_worked_by_hand():
    # ranks 1, 1.5, 2 of the first and 2, 1.5, 1 of the second
    rows = scores({"LEGNN": [0.9, 0.8, 0.7], "a": [0.8, 0.8, 0.9], "b": [0.1, 0.2, 0.3]})
    tables, figure, notes = rank_designs(rows)
    table = tables["Mean ranks"].set_index("design")
    assert table["mean rank"].to_dict() == {"LEGNN": 1.5, "a": 1.5, "b": 3.0}
    assert table.loc["b", "behind the best"] == "1.50"
    assert f"is {critical_difference(3, 3):.2f}" in notes[0]
    assert "Friedman's test" in notes[0]
    assert figure is not None


def test_a_design_far_behind_the_best_is_marked():
    tables, _, _ = rank_designs(scores({"LEGNN": [0.9] * 8, "a": [0.5] * 8, "b": [0.1] * 8}))
    assert tables["Mean ranks"]["behind the best"].tolist() == ["0.00", "1.00", "2.00*"]


def test_designs_that_ran_on_some_data_sets_are_ranked_on_those():
    rows = scores({"LEGNN": [0.9, 0.8, 0.7], "typed": [None, 0.9, 0.9], "a": [0.1, 0.2, 0.3]})
    tables, _, _ = rank_designs(rows)
    everywhere = tables["Mean ranks of the designs that ran on all data sets"].set_index("design")["mean rank"]
    assert everywhere.to_dict() == {"LEGNN": 1.0, "a": 2.0}
    typed = tables["Mean ranks on the data sets that all designs ran on"].set_index("design")["mean rank"]
    assert typed.to_dict() == {"typed": 1.0, "LEGNN": 2.0, "a": 3.0}


def test_the_cost_of_every_design_is_measured_once_on_each_data_set(plan):
    found = design_cost(plan)
    table = found.tables[""]
    assert len(table) == 3 + 4
    assert (table["s an epoch"] > 0).all()
    assert table["peak memory (GiB)"].isna().all()
    assert "on a CPU it is not measured" in found.notes[0]
    parameters = designs(plan).tables["Cost"]["parameters"]
    assert table["parameters"].tolist() == parameters.tolist()


# -- published figures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "is_shown"), [({}, True), ({"data.split": 0}, False), ({"data.cross_label_edges": 10}, False)]
)
def test_published_figures_stand_beside_ours_on_the_public_split_alone(real_data, tmp_path, given, is_shown):
    gcn = other_model("GCN", "pyg_gcn")
    own = Experiment(name="own", kind="table", title="Designs", variants=lambda source: (gcn, LEGNN), make=designs)
    given = {"train.epochs": 1, "model.hidden": 4, "model.layers": 2, **given}
    plan = Plan(own, Request(data=("cora",), backbones=("gcn",), seeds=1, out=tmp_path, settings=given))
    for run in plan.missing():
        assert train_planned(run, tmp_path).state == "finished"
    tables = designs(plan).tables
    assert ("Published figures" in tables) == is_shown
    if is_shown:
        row = tables["Published figures"].iloc[0]
        accuracy = json.loads((plan.runs(next(plan.cells()))[0].path / "result.json").read_text())["test"]["accuracy"]
        assert (row["data"], row["design"], row["published"]) == ("cora", "GCN", "0.815")
        assert row["ours"] == f"{accuracy:.4f}"


def test_the_experiment_of_the_catalog_makes_this_report():
    assert EXPERIMENTS["designs"].make is designs


def test_rows_of_an_earlier_report_are_ranked_together_with_these(plan, report, tmp_path):
    path = tmp_path / "earlier.csv"
    report.values.assign(data=report.values["data"] + "-earlier").to_csv(path, index=False)
    both = designs(Plan(plan.experiment, replace(plan.request, compare_with=(path,))))
    assert both.tables["Test accuracy"].columns.tolist() == ["design", "first", "second"], "scores are these alone"
    (heading,) = [name for name in both.tables if name.startswith("Mean ranks of the designs that ran on all")]
    assert any(note.startswith(heading) and "on 4 data sets" in note for note in both.notes)
    pairs = both.tables["Difference of test accuracy to LEGNN"]["pairs won"].tolist()
    assert pairs[0].endswith(" of 8"), "two seeds of four data sets"


def test_a_file_that_is_no_report_is_refused_in_one_sentence(plan, tmp_path):
    with pytest.raises(InputError, match="there is no report"):
        replace(plan.request, compare_with=(tmp_path / "nowhere.csv",))
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is no report of scores: it has no column"):
        designs(Plan(plan.experiment, replace(plan.request, compare_with=(other,))))
