"""Which runs an experiment needs: shared by digest, missing ones alone, the best of several tried on validation."""

import json
from pathlib import Path

import pytest
from tests.backbones import registered
from tests.experiments.training import train_planned
from tests.graphs import small_data, table_folder
from torch_geometric.nn import SAGEConv

from legnn.errors import InputError
from legnn.experiments import EXPERIMENTS, Experiment, Plan, Report, Request, Variant
from legnn.experiments.candidates import CANDIDATES
from legnn.experiments.planned import PlannedRun
from legnn.files import write_text
from legnn.nn import lifted
from legnn.sweep.tasks import FAILURE

QUICK = {"train.epochs": 2, "model.hidden": 8, "model.attention.heads": 2}


def plan_of(folder: Path, name: str = "label-usage", **changes) -> Plan:
    request = {
        "data": (str(folder),),
        "backbones": ("gcn",),
        "seeds": 2,
        "out": folder.parent / "out",
        "settings": QUICK,
    }
    return Plan(EXPERIMENTS[name], Request(**{**request, **changes}))


@pytest.fixture
def folder(tmp_path):
    return table_folder(tmp_path / "small", small_data())


def test_a_run_is_found_again_by_its_settings_in_any_order():
    one = PlannedRun.of("cora", "paper", {"model.labels": "concat", "model.backbone": "gat"}, 3)
    other = PlannedRun.of("cora", "paper", {"model.backbone": "gat", "model.labels": "concat"}, 3)
    assert one == other
    assert one.folder(Path("out")) == other.folder(Path("out"))
    assert one.settings.values["train.seed"] == 3
    assert one.settings.preset == "paper"


@pytest.mark.parametrize(
    "change",
    [{"source": "citeseer"}, {"preset": "paper"}, {"values": (("model.labels", "concat"),)}, {"num_splits": 10}],
)
def test_another_setting_is_another_folder(change):
    from dataclasses import replace

    one = PlannedRun.of("cora", "recommended", {"model.labels": "vanilla"}, 0)
    assert replace(one, **change).folder(Path("out")) != one.folder(Path("out"))


def test_seeds_of_one_setting_lie_side_by_side():
    one, other = (PlannedRun.of("cora", "paper", {}, seed).folder(Path("out")) for seed in (0, 1))
    assert one.parent == other.parent
    assert (one.name, other.name) == ("seed-0", "seed-1")


def test_seed_k_takes_split_k_and_begins_again():
    splits = [
        PlannedRun.of("actor", "paper", {}, seed, num_splits=10).settings.values["data.split"] for seed in (0, 9, 12)
    ]
    assert splits == [0, 9, 2]


def test_a_layer_of_the_callers_own_is_refused_before_anything_is_trained(folder):
    with (
        registered("own mean", lifted(lambda settings, both, out: SAGEConv(both, out))),
        pytest.raises(InputError, match="backbone = 'own mean' was registered in this process, and other processes"),
    ):
        plan_of(folder, backbones=("gcn", "own mean"))


def test_a_plan_misses_every_method_and_seed_once(folder):
    plan = plan_of(folder, backbones=("gcn", "gat"))
    missing = plan.missing()
    assert len(missing) == len(set(missing)) == 2 * 4 * 2


def test_a_finished_run_is_not_missing_and_is_shared_by_experiments(folder):
    plan = plan_of(folder)
    for run in plan.missing():
        assert train_planned(run, plan.request.out).state == "finished"
    assert plan.missing() == []
    assert plan_of(folder, "smoothness").missing() == []
    assert len(plan_of(folder, "label-usage", seeds=3).missing()) == 4


def _write_result(plan: Plan, run: PlannedRun, accuracy: float) -> None:
    """Trains for two epochs, then writes another validation accuracy into the result."""
    assert train_planned(run, plan.request.out).state == "finished"
    path = run.folder(plan.request.out) / "result.json"
    result = json.loads(path.read_text())
    result["val"]["accuracy"] = accuracy
    result["test"]["accuracy"] = 1 - accuracy
    path.write_text(json.dumps(result))


def test_of_several_settings_the_best_on_validation_goes_on_for_each_method(folder):
    plan = plan_of(folder, trials=3, settings={"train.epochs": 2})
    first = plan.missing()
    assert len(first) == 3 * 4, "every method tries the same number of settings, with one seed"
    assert {run.seed for run in first} == {0}
    for number, run in enumerate(first):
        _write_result(plan, run, [0.2, 0.9, 0.5][number % 3])
    rest = plan.missing()
    assert {run.seed for run in rest} == {1}
    assert len(rest) == 4
    for run in rest:
        assert CANDIDATES[1].items() <= dict(run.values).items()


def test_of_equally_accurate_settings_the_first_goes_on(folder):
    plan = plan_of(folder, trials=2, settings={"train.epochs": 2})
    for run in plan.missing():
        _write_result(plan, run, 0.5)
    cell = next(iter(plan.cells()))
    assert "norm" not in plan.settings_of(cell)


def test_what_the_user_gave_is_not_tried_otherwise(folder):
    plan = plan_of(folder, trials=3, settings={"model.hidden": 8, "train.epochs": 1})
    assert all(dict(run.values)["model.hidden"] == 8 for run in plan.missing())


def own_plan(folder: Path, variant: Variant, **changes) -> Plan:
    """A plan of one variant."""
    own = Experiment(
        name="own",
        kind="table",
        title="One row",
        variants=lambda source: (variant,),
        make=lambda plan: pytest.fail("no report"),
    )
    request = {"data": (str(folder),), "backbones": ("gcn",), "seeds": 2, "out": folder.parent / "out"}
    return Plan(own, Request(**{**request, "settings": {"train.epochs": 1}, **changes}))


def test_a_variant_with_settings_of_its_own_tries_those_and_as_many_as_it_has(folder):
    own = Variant(
        "own", {"model.labels": "vanilla"}, candidates=({"model.hidden": 4}, {"model.hidden": 8, "model.dropout": 0.1})
    )
    plan = own_plan(folder, own, trials=4)
    cell = next(iter(plan.cells()))
    assert [dict(run.values).get("model.hidden") for run in plan.missing()] == [4, 8]
    assert plan.num_candidates(cell) == 2
    assert plan.best_candidate(cell) is None
    for run, accuracy in zip(plan.missing(), (0.4, 0.6), strict=True):
        _write_result(plan, run, accuracy)
    assert plan.best_candidate(cell) == 1
    assert [(run.seed, dict(run.values)["model.hidden"]) for run in plan.missing()] == [(1, 8)]
    assert [dict(run.values)["model.hidden"] for run in own_plan(folder, own, trials=1).missing()] == [4]


def test_what_the_user_or_the_variant_gave_wins_over_settings_to_try(folder):
    own = Variant(
        "own",
        {"model.labels": "vanilla", "model.dropout": 0.2},
        candidates=({"train.epochs": 7, "model.dropout": 0.9, "train.lr": 0.1},),
    )
    values = dict(own_plan(folder, own).missing()[0].values)
    assert (values["train.epochs"], values["model.dropout"], values["train.lr"]) == (1, 0.2, 0.1)


def test_a_setting_to_try_that_does_not_exist_is_refused_before_anything_is_trained(folder):
    with pytest.raises(InputError, match="there is no setting 'hiden'"):
        own_plan(folder, Variant("own", {}, candidates=({"hiden": 4},)))


@pytest.mark.parametrize("name", ["model.labels", "model.backbone"])
def test_a_setting_that_the_experiment_varies_is_refused(folder, name):
    with pytest.raises(InputError, match=f"varies {name} itself"):
        plan_of(folder, settings={name: "gat"})


def test_a_new_experiment_is_a_few_lines(folder):
    import pandas as pd

    own = Experiment(
        name="own",
        kind="table",
        title="Two dropouts",
        variants=lambda source: (Variant("none", {"model.dropout": 0.0}), Variant("half", {"model.dropout": 0.5})),
        make=lambda plan: Report(
            tables={}, values=pd.DataFrame([r.seed for c in plan.cells() for r in plan.results(c)])
        ),
    )
    plan = Plan(
        own, Request(data=(str(folder),), backbones=("gcn",), seeds=1, out=folder.parent / "out", settings=QUICK)
    )
    for run in plan.missing():
        train_planned(run, plan.request.out)
    assert len(own.make(plan).values) == 2


def test_a_setting_that_cannot_be_trained_is_left_out_of_the_comparison(folder):
    plan = plan_of(folder, "label-usage", trials=2, only=("vanilla",), seeds=1, settings={**QUICK, "model.layers": 2})
    (cell,) = plan.cells()
    first, second = plan.missing()
    write_text(first.folder(plan.request.out) / FAILURE, "the loss is no longer a number")
    assert plan.settings_of(cell) is None, "the other is not finished"
    _write_result(plan, second, 0.1)
    assert plan.best_candidate(cell) == 1
    assert plan.missing() == []
    assert len(plan.runs(cell)) == 1


def test_a_run_that_fails_leaves_the_reason_and_is_tried_again(folder):
    plan = plan_of(
        folder, "label-usage", only=("vanilla",), seeds=1, settings={**QUICK, "train.lr": 1e30, "model.norm": "none"}
    )
    (run,) = plan.missing()
    outcome = train_planned(run, plan.request.out)
    assert outcome.error
    assert run.has_failed(plan.request.out)
    assert (run.folder(plan.request.out) / "failure.txt").read_text() == outcome.error
    assert plan.missing() == [run], "nothing else can stand for it"


def test_only_some_rows_are_trained_and_a_name_that_is_none_is_refused(folder):
    plan = plan_of(folder, only=("vanilla", "LEGNN"))
    assert [cell.variant.name for cell in plan.cells()] == ["vanilla", "LEGNN"]
    with pytest.raises(InputError, match=r"label-usage has no row 'vanila' \(did you mean 'vanilla'\?\); choose from"):
        plan_of(folder, only=("vanila",))
