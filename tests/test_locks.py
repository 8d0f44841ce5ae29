"""One writer a folder, with real processes: refused while another holds it, taken over when that was killed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from legnn.errors import FolderInUse, InputError
from legnn.locks import LOCK, OWNER, clear_folder, contents, hold_folder

HOLD = """
import sys, time
sys.path[:0] = {path!r}
from pathlib import Path
from legnn.errors import FolderInUse
from legnn.locks import hold_folder
for place in sys.argv[1:]:
    sys.stdin.readline()
    try:
        with hold_folder(Path(place)):
            print("held", flush=True)
            sys.stdin.readline()
    except FolderInUse as error:
        print(error, flush=True)
"""


def start(*places: Path) -> subprocess.Popen:
    """A process that tries to hold each of the folders when a line is sent, until the next line."""
    command = [sys.executable, "-c", HOLD.format(path=sys.path), *map(str, places)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def tell(process: subprocess.Popen) -> None:
    process.stdin.write("\n")


def test_of_two_processes_at_the_same_time_one_is_refused_in_20_of_20_races(tmp_path):
    places = [tmp_path / str(k) for k in range(20)]
    pair = [start(*places), start(*places)]
    for place in places:
        for process in pair:
            tell(process)
        said = [process.stdout.readline().strip() for process in pair]
        assert sorted(said)[1] == "held", said
        assert sorted(said)[0].startswith("another process"), said
        assert sorted(said)[0].endswith(
            f"is writing to {place}; wait until it has ended, or give another folder as `out`"
        )
        tell(pair[said.index("held")])
    assert [process.wait(10) for process in pair] == [0, 0]
    assert list(tmp_path.glob("*/*")) == [], "no lock is left"


def test_a_process_that_was_killed_holds_nothing(tmp_path):
    process = start(tmp_path / "run")
    tell(process)
    assert process.stdout.readline() == "held\n"
    with (
        pytest.raises(FolderInUse, match=rf"another process \({process.pid} on .*\) is"),
        hold_folder(tmp_path / "run"),
    ):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert (tmp_path / "run" / LOCK).is_file(), "as a crash leaves it"
    with hold_folder(tmp_path / "run"):
        assert (tmp_path / "run" / OWNER).read_text().startswith(f"{os.getpid()} on ")


def test_a_process_that_was_forked_does_not_keep_the_lock_of_its_parent(tmp_path):
    reader, writer = os.pipe()
    with hold_folder(tmp_path / "run"):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
    with hold_folder(tmp_path / "run"):
        pass
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0


def test_a_thread_holds_a_folder_alone_and_enters_again_only_where_that_is_meant(tmp_path):
    found = []

    def other() -> None:
        try:
            with hold_folder(tmp_path, again=True):
                found.append("held")
        except FolderInUse as error:
            found.append(str(error))

    with hold_folder(tmp_path), hold_folder(tmp_path / ".", again=True):
        with pytest.raises(FolderInUse, match="this process is writing to"), hold_folder(tmp_path):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [f"this process is writing to {tmp_path}; wait until it has ended, or give another folder as `out`"]
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_folder_is_that_folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    with hold_folder(tmp_path / "run"), pytest.raises(FolderInUse), hold_folder(tmp_path / "link"):
        pass


def test_what_is_in_the_folder_stays(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with hold_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with (
        pytest.raises(InputError, match=r"notes\.txt is already there and is a file"),
        hold_folder(tmp_path / "notes.txt"),
    ):
        pass


@pytest.mark.parametrize("name", [LOCK, OWNER])
def test_link_in_the_place_of_the_lock_leaves_its_target_untouched(name, tmp_path):
    target, folder = tmp_path / "mine.txt", tmp_path / "run"
    target.write_text("mine")
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(InputError, match=r"\.lock.* is a symbolic link.*; remove it"), hold_folder(folder):
        pass
    assert target.read_text() == "mine"


def test_cleared_folder_keeps_its_lock_and_the_target_of_a_link(tmp_path):
    folder = tmp_path / "run"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with hold_folder(folder):
        (folder / "sub").mkdir()
        (folder / "sub" / "a").write_text("a")
        (folder / "link").symlink_to(tmp_path / "other")
        assert contents(folder) == ["link", "sub"]
        clear_folder(folder)
        assert sorted(path.name for path in folder.iterdir()) == [LOCK, OWNER]
    assert (tmp_path / "other" / "mine.txt").read_text() == "mine"


def test_a_folder_whose_writer_was_killed_while_it_took_the_lock_is_free_and_empty(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / "..lock-owner.0123abcd.partial").write_text("12")
    assert contents(tmp_path) == []
    with hold_folder(tmp_path):
        assert not list(tmp_path.glob("*.partial"))
