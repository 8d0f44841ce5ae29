"""How a run says that it was asked to stop."""

from __future__ import annotations

from pathlib import Path


class Interrupted(Exception):  # noqa: N818 (not an error: the user asked)
    """The run was asked to stop; its checkpoint is written."""

    def __init__(self, epoch: int, folder: Path | None) -> None:
        super().__init__(f"interrupted after epoch {epoch}")
        self.epoch, self.folder = epoch, folder
