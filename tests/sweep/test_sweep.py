"""A sweep trains each of its runs once, to the same bits as alone, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.graphs import small_data
from tests.locked import is_locked
from tests.named import arguments, named
from tests.runs.small_runs import assert_same_run

import legnn
from legnn.config import Settings
from legnn.errors import FolderInUse, InputError, Interrupted
from legnn.runs import RunFolder
from legnn.runs.graphs import load_new
from legnn.sweep import LocalExecutor, SerialExecutor, Sweep, SweepProgress, Trial

QUICK = {"epochs": 6, "hidden": 8, "dropout": 0.5, "checkpoint_seconds": 0.0, "device": "cpu"}


def seeds(count: int, data=None, **given) -> list[Trial]:
    """The same run with several seeds."""
    graph, settings = load_new(Settings(values=named(**{**QUICK, **given})), small_data() if data is None else data)
    return [
        Trial(name=f"seed-{seed}", data=graph, settings=settings.override(named(seed=seed))) for seed in range(count)
    ]


def run(folder: Path, trials: list[Trial], executor=None, **options) -> dict[str, str]:
    """Runs a sweep and returns the states by trial."""
    with executor or SerialExecutor() as open_executor:
        return {outcome.trial: outcome.state for outcome in Sweep(folder, trials).run(open_executor, **options)}


def script(folder: Path, *lines: str) -> Path:
    """A script that trains seeds in `sweep`; it has no guard for `__main__`."""
    path = folder / "script.py"
    head = ["import os, signal, sys", "from tests.sweep.test_sweep import *"]
    path.write_text("\n".join([*head, *lines]) + "\n")
    return path


def python(path: Path, cwd: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd() / "src"), str(Path.cwd())])}
    return subprocess.run([sys.executable, path], cwd=cwd, env=environment, text=True, capture_output=True)


@pytest.mark.parametrize("executor", [SerialExecutor, lambda: LocalExecutor(2)], ids=["serial", "processes"])
def test_every_run_of_a_sweep_is_to_the_bit_what_it_is_alone(tmp_path, executor):
    events = []
    assert run(tmp_path / "all", seeds(3), executor(), on_event=events.append) == {
        f"seed-{seed}": "finished" for seed in range(3)
    }
    for seed in range(3):
        legnn.train(small_data(), **arguments(**QUICK, seed=seed), out=tmp_path / f"alone-{seed}")
        assert_same_run(tmp_path / "all" / f"seed-{seed}", tmp_path / f"alone-{seed}")
        logs = [event.log.epoch for event in events if event.trial == f"seed-{seed}" and event.log is not None]
        assert logs == [1, 2, 3, 4, 5, 6]


def test_finished_runs_are_not_trained_again(tmp_path):
    run(tmp_path, seeds(2))
    events = []
    assert run(tmp_path, seeds(3), on_event=events.append) == {f"seed-{seed}": "finished" for seed in range(3)}
    assert {event.trial for event in events} == {"seed-2"}


def test_a_sweep_that_is_asked_to_stop_continues_to_the_same_bits(tmp_path):
    events = []
    with pytest.raises(Interrupted) as stopped:
        run(tmp_path / "cut", seeds(2), on_event=events.append, should_stop=lambda: len(events) >= 5)
    assert stopped.value.folder == tmp_path / "cut"
    run(tmp_path / "cut", seeds(2))
    run(tmp_path / "whole", seeds(2))
    for seed in range(2):
        assert_same_run(tmp_path / "cut" / f"seed-{seed}", tmp_path / "whole" / f"seed-{seed}")


def test_a_paused_trial_continues_to_a_later_epoch(tmp_path):
    trial = seeds(1)[0]
    steps = [Trial(name="run", data=trial.data, settings=trial.settings, epochs=epochs) for epochs in (2, 4, None)]
    outcomes = [outcome.state for outcome in Sweep(tmp_path / "cut", steps).run(SerialExecutor())]
    assert outcomes == ["paused", "paused", "finished"]
    legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "whole")
    assert_same_run(tmp_path / "cut" / "run", tmp_path / "whole")


def test_a_deadline_ends_a_run_after_the_current_epoch(tmp_path):
    trial = seeds(1, epochs=100_000, patience=100_000)[0]
    late = Trial(name="run", data=trial.data, settings=trial.settings, deadline=time.monotonic() + 1.0)
    began = time.monotonic()
    assert run(tmp_path, [late]) == {"run": "finished"}
    assert time.monotonic() - began < 30
    assert RunFolder(tmp_path / "run").result().epochs < 100_000


def test_a_sweep_refuses_runs_that_it_did_not_plan(tmp_path):
    legnn.train(small_data(), **arguments(**QUICK), out=tmp_path / "foreign" / "seed-0")
    with pytest.raises(InputError, match="belongs to other settings or data"):
        run(tmp_path / "foreign", seeds(1))
    run(tmp_path / "mine", seeds(1))
    with pytest.raises(InputError, match="belongs to other settings or data"):
        run(tmp_path / "mine", seeds(1, lr=0.5))
    with pytest.raises(InputError, match="is a sweep on other data"):
        run(tmp_path / "mine", seeds(1, data=small_data(seed=1)))
    (tmp_path / "mine" / "seed-0").rename(tmp_path / "old")
    legnn.train(small_data(), **arguments(**{**QUICK, "lr": 0.5}), out=tmp_path / "mine" / "seed-0")
    with pytest.raises(InputError, match="other settings than its sweep planned"):
        run(tmp_path / "mine", seeds(1))


def test_a_run_that_cannot_be_trained_fails_alone(tmp_path):
    good, bad = seeds(2)
    bad = Trial(name=bad.name, data=bad.data, settings=bad.settings.override(named(backbone="gat", hidden=7, heads=2)))
    outcomes = {outcome.trial: outcome for outcome in Sweep(tmp_path, [bad, good]).run(SerialExecutor())}
    assert [outcomes[name].state for name in ("seed-1", "seed-0")] == ["failed", "finished"]
    with pytest.raises(InputError, match="heads"):
        outcomes["seed-1"].raise_error()


def test_a_folder_has_one_sweep_at_a_time(tmp_path):
    sweep = Sweep(tmp_path, seeds(2))
    outcomes = sweep.run(SerialExecutor())
    next(outcomes)
    command = ["from pathlib import Path", f"run(Path({str(tmp_path)!r}), seeds(2))"]
    ended = python(script(tmp_path.parent, *command), tmp_path)
    assert FolderInUse.__name__ in ended.stderr
    assert [outcome.state for outcome in outcomes] == ["finished"]


@pytest.mark.slow
@pytest.mark.parametrize("kill_after", [1, 7, 30])
def test_killed_sweep_trains_no_trial_twice(tmp_path, kill_after):
    given = {"epochs": 20, "patience": 20}
    kill = [
        "events = []",
        "def on_event(event):",
        "    events.extend([event.log] if event.log else [])",
        f"    if len(events) == {kill_after}:",
        "        os.kill(os.getpid(), signal.SIGKILL)",
        f"run(Path('cut'), seeds(3, **{given}), LocalExecutor(2), on_event=on_event)",
    ]
    assert python(script(tmp_path, *kill), tmp_path).returncode == -signal.SIGKILL
    folders = [tmp_path / "cut" / f"seed-{seed}" for seed in range(3)]
    while any(is_locked(folder) for folder in folders):
        time.sleep(0.1)
    logged = {folder.name: len(RunFolder(folder).logs()) if folder.is_dir() else 0 for folder in folders}
    finished = {folder.name for folder in folders if RunFolder(folder).is_finished}
    events = []
    assert set(run(tmp_path / "cut", seeds(3, **given), on_event=events.append).values()) == {"finished"}
    run(tmp_path / "whole", seeds(3, **given))
    for folder in folders:
        epochs = [event.log.epoch for event in events if event.trial == folder.name and event.log is not None]
        # every epoch has a checkpoint: none is trained again
        assert epochs == ([] if folder.name in finished else [*range(logged[folder.name] + 1, 21)])
        assert_same_run(folder, tmp_path / "whole" / folder.name)


@pytest.mark.slow
def test_a_script_without_a_main_guard_trains_in_processes_and_no_module_of_its_folder_is_executed(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "multiprocessing.py").write_text("raise SystemExit('executed')\n")
    path = script(tmp_path, "print('begun')", "print(run(Path('sweep'), seeds(2), LocalExecutor(1)))")
    ended = python(path, tmp_path / "here")
    assert ended.stdout.splitlines() == ["begun", str({"seed-0": "finished", "seed-1": "finished"})], ended.stderr
    assert "executed" not in ended.stderr


@pytest.mark.slow
def test_a_process_that_is_killed_fails_its_task_alone(tmp_path):
    killed = []

    def on_event(event):
        if event.trial == "seed-0" and event.log is not None and not killed:
            worker = executor._slots[0]._process.pid
            killed.append(worker)
            os.kill(worker, signal.SIGSEGV)

    executor = LocalExecutor(1)
    trials = seeds(2, epochs=20_000, patience=20_000)[:1] + seeds(2)[1:]
    with executor:
        sweep = Sweep(tmp_path, trials)
        outcomes = {outcome.trial: outcome for outcome in sweep.run(executor, on_event=on_event)}
    assert (outcomes["seed-0"].state, outcomes["seed-1"].state) == ("failed", "finished")
    assert f"signal {int(signal.SIGSEGV)}" in outcomes["seed-0"].error
    assert "signal" in (tmp_path / "seed-0" / "failure.txt").read_text()


@pytest.mark.slow
def test_processes_get_their_share_of_the_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    executor = LocalExecutor(4)
    assert [slot._gpu for slot in executor._slots] == ["3", "5", "3", "5"]


def test_the_plan_has_the_digest_of_each_run(tmp_path):
    run(tmp_path, seeds(2))
    digests = json.loads((tmp_path / "sweep.json").read_text())["runs"]
    assert sorted(digests) == ["seed-0", "seed-1"]
    assert len({run["digest"] for run in digests.values()}) == 2


def test_progress_counts_runs_and_names_the_best(tmp_path, capsys):
    progress = SweepProgress(total=2, plain_seconds=0.0)
    with progress:
        for outcome in Sweep(tmp_path, seeds(2)).run(SerialExecutor(), on_event=progress.on_event):
            progress.on_outcome(outcome)
    lines = capsys.readouterr().err
    assert "2 of 2 runs" in lines
    assert "best 0." in lines
    assert "seed-1 epoch 6 val" in lines
