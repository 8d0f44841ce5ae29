"""Mutations are refused in one sentence or give what is right; and the campaign would see if they did not."""

import sys
from pathlib import Path

import pytest
from benchmarks.campaign.cases import Case, RefusedByCommand, judge
from benchmarks.campaign.mutations import VERDICTS, Mutation, make_specimens, markdown, run_mutations
from benchmarks.campaign.results import Nonsense
from benchmarks.campaign.setting_cases import setting_case
from benchmarks.campaign.worker import random_of

from legnn.errors import InputError

SEED, COUNT = 7, 140
PREPARED = [3, 7, 14, 19, 23, 30, 35, 39, 46, 51, 55, 62]
"""Numbers of mutations of prepared folders."""


@pytest.fixture(scope="module")
def specimens(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("specimens")
    make_specimens(folder)
    return folder


@pytest.mark.slow
def test_no_mutation_gives_a_traceback_a_signal_or_another_result_without_a_word(specimens):
    found = [*run_mutations(range(COUNT), SEED, batch=COUNT, specimens=specimens)]
    assert [one.number for one in found] == [*range(COUNT)]
    assert {one.kind for one in found} == {"tables", "runs", "prepared", "settings", "caches"}
    assert [one for one in found if one.is_failure] == []


@pytest.mark.slow
def test_a_check_that_is_taken_away_is_found_missing(specimens):
    found = [*run_mutations(PREPARED, SEED, worker="tests.campaign.careless_worker", specimens=specimens)]
    assert {one.kind for one in found} == {"prepared"}
    assert "silent other result" in {one.verdict for one in found}


def test_a_signal_and_a_hang_are_counted_and_the_others_go_on():
    found = [*run_mutations([1, 2, 3, 4], 0, limit=1.0, worker="tests.campaign.crashing_worker")]
    assert [one.verdict for one in found] == ["same", "signal", "hang", "same"]
    assert "SIGSEGV" in found[1].message


def case(action, **fields) -> Case:
    return Case(about="", actions={"act": action}, expected=lambda _: "as before", **fields)


def refuse(message):
    def action():
        raise InputError(message)

    return action


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        (lambda: "as before", "same"),
        (lambda: "another", "silent other result"),
        (refuse("this is wrong"), "refused"),
        (refuse("this is wrong\nin two lines"), "not one sentence"),
        (refuse("load it with weights_only=False"), "not one sentence"),
        (refuse(" "), "not one sentence"),
        (lambda: {}["nothing"], "traceback"),
        (lambda: sys.exit(3), "traceback"),
    ],
)
def test_the_verdict_is_that_of_what_happened(action, verdict):
    assert judge(case(action)).verdict == verdict


def test_another_result_of_another_table_is_none_of_the_failures():
    assert judge(case(lambda: "another", may_differ=True)).verdict == "other, said"


def test_probabilities_that_are_none_are_a_failure_even_of_another_table():
    def action():
        raise Nonsense("NaN")

    assert judge(case(action, may_differ=True)).verdict == "silent other result"


def test_words_of_the_command_line_may_have_several_lines():
    def action():
        raise RefusedByCommand("Usage: …\n\nno such option")

    assert judge(case(action)).verdict == "refused"


def test_a_refusal_that_changes_a_folder_or_leaves_one_is_a_loss(tmp_path):
    guarded, out = tmp_path / "guarded", tmp_path / "out"
    guarded.mkdir()

    def leave(path):
        def action():
            path.mkdir(exist_ok=True)
            (path / "file").touch()
            raise InputError("this is wrong")

        return action

    assert judge(case(leave(guarded), guarded=guarded)).verdict == "lost"
    assert judge(case(leave(out), guarded=guarded, outputs=[out])).verdict == "lost"


def test_a_lock_that_is_left_is_a_loss(tmp_path):
    def action():
        (tmp_path / ".lock").touch()
        return "as before"

    assert judge(case(action, guarded=tmp_path)).verdict == "lost"


def test_the_counts_are_a_table_of_kinds_and_verdicts():
    made = [
        Mutation(number=n, kind=kind, about="", verdict=verdict, message="")
        for n, (kind, verdict) in enumerate([("runs", "same"), ("runs", "refused"), ("tables", "hang")])
    ]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown(made).splitlines()]
    assert lines[0] == ["", *VERDICTS, "all"]
    assert lines[2] == ["runs", "1", "1", *["0"] * 7, "2"]
    assert lines[-1] == ["all", "1", "1", "0", "0", "0", "1", *["0"] * 3, "3"]


def test_a_mutation_is_made_of_its_seed_and_number_alone(tmp_path):
    def about(name, number):
        (tmp_path / name).mkdir()
        return setting_case(random_of(SEED, number), tmp_path, tmp_path / name).about

    first = about("first", 2)
    assert about("between", 6) != first
    assert about("again", 2) == first
