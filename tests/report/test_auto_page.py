"""The page of a folder of `auto`."""

import numpy as np
import pandas as pd
import pytest
from tests.graphs import small_data, table_folder

import legnn
from legnn.errors import plural
from legnn.report.collecting import collect
from legnn.sweep import SerialExecutor

ONLY = ["label-propagation", "gcn-direct", "mlp-wide"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("auto")
    tables = table_folder(place / "tables", small_data())
    options = {"only": ONLY, "budget": 60, "trials": 3, "executor": SerialExecutor()}
    legnn.auto(tables, out=place / "auto", epochs=5, device="cpu", **options)
    return place / "auto"


@pytest.fixture(scope="module")
def shown(folder):
    (payload,) = collect([folder], nodes=["n3"], device="cpu").runs
    return payload


def test_the_leaderboard_has_every_row_of_the_search_in_its_order(folder, shown):
    board = pd.read_csv(folder / "leaderboard.csv")
    leaderboard = shown.sections["overview"].leaderboard
    rows = leaderboard.rows
    assert leaderboard.unit == "candidates"
    assert [(row.name, row.postprocess) for row in rows] == list(zip(board["name"], board["postprocess"], strict=True))
    assert {row.name for row in rows} == set(ONLY)
    assert np.nansum([row.weight for row in rows]) == pytest.approx(1)


def test_the_scores_and_the_title_are_those_of_the_ensemble(folder, shown):
    ensemble = legnn.open(folder)
    assert shown.kind == "ensemble"
    assert shown.sections["overview"].scores[0].scores["accuracy"].mean == ensemble.result.test["accuracy"]
    assert shown.title == f"ensemble of {plural(len(ensemble.members), 'member')}"
    assert [node.id for node in shown.sections["node"]] == ["n3"]


def test_one_member_is_not_called_members(folder):
    ensemble = legnn.open(folder)
    assert ensemble.with_members(ensemble.members[:1]).title == "ensemble of 1 member"
