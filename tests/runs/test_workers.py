"""Worker processes: a task that ends its process fails alone, and tasks end when they are asked to."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runs.worker_tasks import answer, carry_out_list

from legnn.runs.task_server import Ended
from legnn.runs.worker_process import Failure, Worker

ROOT = Path(__file__).parents[2]
LONGEST = 60.0


def wait_until(is_so) -> bool:
    end = time.monotonic() + LONGEST
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(is_so())


def is_running(pid: int) -> bool:
    try:
        # a process that has ended stays a zombie until its parent, here the container's first process, asks for it
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_a_process_that_is_killed_fails_its_task_alone():
    tasks = [("square", 2), ("kill",), ("square", 3), ("square", 4), ("square", 5)]
    found = carry_out_list(tasks, 2)
    assert {task: found[task][0] for task in tasks if task[0] == "square"} == {
        ("square", k): k * k for k in (2, 3, 4, 5)
    }
    assert found["kill",] == Failure("its process was ended (signal 9), perhaps for want of memory")
    pids = {outcome[1] for outcome in found.values() if not isinstance(outcome, Failure)}
    assert os.getpid() not in pids


@pytest.mark.slow
def test_a_pause_ends_one_task_and_a_stop_all_even_while_the_process_starts():
    worker = Worker(answer, 1)
    try:
        worker.begin(("wait",))
        worker.pause()  # the process does not listen yet
        said, pid = worker.receive().value
        assert said == "paused"
        worker.pause()  # too late: not meant for the next task
        worker.begin(("square", 3))
        assert worker.receive() == Ended((9, pid))
        assert not worker.has_ended
        worker.begin(("wait",))
        worker.stop()
        assert worker.receive() == Ended(("stopped", pid))
        worker.begin(("raise",))
        assert "exit code 1" in worker.receive().why, "an OSError of the task is not that of a closed connection"
        assert worker.has_ended
    finally:
        worker.close()
    assert not is_running(pid)


@pytest.mark.slow
def test_a_stop_ends_the_tasks_in_flight_and_begins_no_other():
    asked = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) > 1

    found = carry_out_list([("wait",), ("square", 2)], 1, should_stop=should_stop)
    assert {task: outcome[0] for task, outcome in found.items()} == {("wait",): "stopped"}


@pytest.mark.slow
def test_a_task_that_does_not_end_can_be_killed():
    found = carry_out_list([("wait",)], 1, on_poll=lambda busy: [one.kill() for one in busy])
    assert "signal 9" in found["wait",].why


@pytest.mark.slow
def test_each_process_sees_one_gpu_and_its_threads_soon_sleep(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    names = "CUDA_VISIBLE_DEVICES", "GOMP_SPINCOUNT"
    found = carry_out_list([("variables", *names), ("more variables", *names)], 2, gpus=["3", "5"])
    assert sorted(outcome[0] for outcome in found.values()) == [["3", "20000"], ["5", "20000"]]
    assert not set(names) & set(os.environ)


@pytest.mark.slow
def test_a_script_need_not_guard_itself(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from tests.runs.worker_tasks import carry_out_list\n"
        "print('run')\n"
        "print([outcome[0] for outcome in carry_out_list([('square', 7)], 1).values()])\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=LONGEST, check=False
    )
    assert (done.returncode, done.stdout) == (0, "run\n[49]\n"), done.stderr


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path):
    places = [tmp_path / "a", tmp_path / "b"]
    code = (
        "import sys\nfrom tests.runs.worker_tasks import carry_out_list\n"
        "carry_out_list([('tell', place) for place in sys.argv[1:]], 2)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, *map(str, places)], cwd=ROOT)
    try:
        assert wait_until(lambda: all(place.is_file() and place.read_text() for place in places))
        pids = [int(place.read_text()) for place in places]
        assert all(map(is_running, pids))
    finally:
        parent.kill()
        parent.wait()
    assert wait_until(lambda: not any(map(is_running, pids)))
