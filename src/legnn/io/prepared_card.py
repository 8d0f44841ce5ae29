"""`graph.json` of a prepared folder: what the folder holds, typed, with digests of all of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from legnn.errors import InputError, first_line
from legnn.files import digest_bytes, digest_file
from legnn.notes import Note
from legnn.typed_json import as_kind, parse_json, write_json

VERSION = 4
CARD = "graph.json"
ADVICE = "restore it from a copy, or prepare the graph again"


@dataclass(frozen=True, kw_only=True)
class PreparedCard:
    """Content of `graph.json`; fields without a description are those of `GraphData`, `NodeTypes` and `Provenance`."""

    version: int
    nodes: int
    edges: int
    features: int
    name: str
    class_names: list[str | int | float]
    feature_names: list[str] | None
    notes: list[Note]
    has_ids: bool = True
    raw_edges: int
    computed_features: list[str]
    feature_digest: str
    type_names: list[str] | None
    target_type: str | None
    type_columns: list[list[str]] | None
    homophily: float | None
    fingerprint: str
    settings: dict[str, Any] | None
    files: dict[str, str]
    """The other files of the folder, with their digests; empty for a file that is not checked."""
    digest: str = ""
    """Of all that is above."""

    def __post_init__(self) -> None:
        if min(self.nodes, self.edges, self.features, len(self.class_names)) < 1:
            raise ValueError("it says that there are no nodes, edges, features or classes")
        if self.feature_names is not None and len(self.feature_names) != self.features:
            raise ValueError(f"it names {len(self.feature_names):,} of {self.features:,} features")
        names, columns = self.type_names, self.type_columns
        if ("node_type.npy" in self.files) is not (names is not None):
            raise ValueError("it has types of nodes, but not all that is known of them")
        if names is not None and (columns is None or len(columns) != len(names) or self.target_type not in names):
            raise ValueError("its types of nodes do not fit together")

    def with_digest(self) -> PreparedCard:
        """Returns the card with a digest of itself."""
        content = {name: value for name, value in asdict(self).items() if name != "digest"}
        return replace(self, digest=digest_bytes(json.dumps(content, sort_keys=True).encode()))


def write_card(folder: Path, card: PreparedCard) -> None:
    """Writes `graph.json`."""
    write_json(folder / CARD, card.with_digest())


def read_card(folder: Path) -> PreparedCard:
    """Returns what `graph.json` holds; raises `InputError` if it is damaged or of another version."""
    path = folder / CARD
    try:
        content = parse_json(path.read_bytes())
        version = content.get("version") if isinstance(content, dict) else None
        if version != VERSION:
            raise InputError(
                f"{path} is of version {version!r} and this legnn reads version {VERSION}; prepare the graph again"
            )
        return as_kind(content, PreparedCard, "the file")
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path, first_line(error)) from None


def check_digests(folder: Path, card: PreparedCard) -> None:
    """Raises `InputError` if anything in the folder is not what was prepared; it reads all files."""
    if card.digest and card.digest != card.with_digest().digest:
        raise _changed(folder / CARD)
    for name, digest in card.files.items():
        try:
            is_same = not digest or digest_file(folder / name) == digest
        except OSError as error:
            raise damaged(folder / name, first_line(error)) from None
        if not is_same:
            raise _changed(folder / name)


def damaged(path: Path, how: str) -> InputError:
    """Returns the error about a file that cannot be what was written."""
    return InputError(f"{path} is damaged ({how}); {ADVICE}")


def _changed(path: Path) -> InputError:
    return InputError(f"{path} was changed after the graph was prepared; {ADVICE}")
