"""Where the real graphs are: `LEGNN_DATA`, or the folder `shared/data` beside the checkout."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# without a GPU its kernels run in Triton's interpreter, which has to be known before they are imported
if not torch.cuda.is_available() and "COMPILE_ONLY" not in os.environ:
    os.environ["TRITON_INTERPRET"] = "1"

# the graphs here are tiny: a second thread would only wait, and wait long where the machine is shared; processes that
# tests start read the variable
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# numba's own threads, which a benchmark uses, would set the number of PyTorch's for all tests that follow
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

# kernels are compiled once for all sessions, though each has an empty cache of everything else
_user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("NUMBA_CACHE_DIR", str(_user_cache / "legnn-tests"))

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_finish() -> None:
    """The objects that imports and the list of tests have made stay to the end: no collection looks through them."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries that look for leaks at the end of the process find what is collected then."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real graphs. In CI it must be there: a missing folder fails, it does not skip."""
    folder = Path(os.environ["LEGNN_DATA"]) if "LEGNN_DATA" in os.environ else BESIDE
    if not folder.is_dir():
        message = f"no real graphs at {folder}; set LEGNN_DATA to a folder that holds them"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.fixture(autouse=True)
def _named_sets_come_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named data sets are read from the real graphs where those are there; nothing is downloaded by accident."""
    if "LEGNN_DATA" not in os.environ and BESIDE.is_dir():
        monkeypatch.setenv("LEGNN_DATA", str(BESIDE))


@pytest.fixture(autouse=True)
def _a_known_start() -> None:
    torch.manual_seed(0)
    # whatever the test before it has left: two threads on busy cores take eight times as long as one
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is computed from a graph and kept does not come from, or go to, the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
