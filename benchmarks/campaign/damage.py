"""Damage to one file: its bytes, its place, or the values that a JSON, YAML, array or Parquet file holds."""

from __future__ import annotations

import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import yaml

Damage = Callable[[Random, Path, Path | None], str]
"""Damages a file, with the same file of another folder at hand, and says what was done."""

ODD: list[Any] = [
    None, True, False, -1, 0, 1, 2, 10**30, -(2**63), 0.5, -1.5, 1e308, "", "x", "1", "ü\u2028\u0000", "a\nb", [], {},
    [[]], {"a": 1}, [None], [1, "a"], "2026-13-45", "NaN", "\\", "../../..", "x" * 5_000,
]  # fmt: skip
RAW = {
    "@deep@": "[" * 100_000,
    "@digits@": "9" * 5_000,
    "@nan@": "NaN",
    "@inf@": "-Infinity",
    "@large@": "1e400",
    "@surrogate@": r'"\ud800"',
    "@object@": '{"a":' * 3_000 + "1" + "}" * 3_000,
}
"""What JSON cannot be made to write from values, by the text that stands for it."""
YAML_RAW = {
    "@deep@": "[" * 3_000,
    "@digits@": "9" * 5_000,
    "@nan@": ".nan",
    "@inf@": "-.inf",
    "@large@": "1e400",
    "@date@": "2026-99-99",
    "@tag@": "!!python/object/apply:os.getpid []",
    "@alias@": "*nowhere",
    "@quote@": "'",
    "@tab@": "\t- a",
    "@binary@": "!!binary aGk=",
    "@set@": "!!set {a, b}",
    "@merge@": "{<<: [1]}",
    "@base60@": "1:30:00",
}


def flip_bits(random: Random, path: Path, other: Path | None) -> str:
    content = bytearray(path.read_bytes() or b"\0")
    number = random.choice((1, 1, 1, 2, 8))
    for _ in range(number):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    return f"{number} bits flipped"


def cut(random: Random, path: Path, other: Path | None) -> str:
    content = path.read_bytes()
    kept = random.randrange(len(content)) if content else 0
    path.write_bytes(content[:kept])
    return f"cut to {kept} of {len(content)} bytes"


def empty(random: Random, path: Path, other: Path | None) -> str:
    path.write_bytes(b"")
    return "emptied"


def zero_block(random: Random, path: Path, other: Path | None) -> str:
    content = bytearray(path.read_bytes())
    begin, size = random.randrange(max(len(content), 1)), random.choice((1, 8, 512))
    content[begin : begin + size] = bytes(len(content[begin : begin + size]))
    path.write_bytes(content)
    return f"{size} zeros at {begin}"


def random_bytes(random: Random, path: Path, other: Path | None) -> str:
    path.write_bytes(random.randbytes(random.choice((1, 16, 4096))))
    return "random bytes in its place"


def append_bytes(random: Random, path: Path, other: Path | None) -> str:
    added = random.choice((b"\0", b"\n", b"{}", b"\xff\xfe", path.read_bytes(), random.randbytes(64)))
    path.write_bytes(path.read_bytes() + added)
    return f"{len(added)} bytes appended"


def prefix_bytes(random: Random, path: Path, other: Path | None) -> str:
    added = random.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\n\n", b" "))
    path.write_bytes(added + path.read_bytes())
    return f"{added!r} before it"


def remove(random: Random, path: Path, other: Path | None) -> str:
    path.unlink()
    return "removed"


def folder_instead(random: Random, path: Path, other: Path | None) -> str:
    path.unlink()
    path.mkdir()
    return "a folder in its place"


def dangling_link(random: Random, path: Path, other: Path | None) -> str:
    path.unlink()
    target = random.choice(("nowhere", path.name))
    path.symlink_to(target)
    return f"a link to {'nothing' if target == 'nowhere' else 'itself'} in its place"


def linked(random: Random, path: Path, other: Path | None) -> str:
    target = path.with_name(f"{path.name}.moved")
    path.rename(target)
    path.symlink_to(target.name)
    return "a link to the file in its place"


def swap(random: Random, path: Path, other: Path | None) -> str:
    if other is None or not other.is_file():
        return empty(random, path, other)
    shutil.copyfile(other, path)
    return "that of another in its place"


def pickled(random: Random, path: Path, other: Path | None) -> str:
    path.write_bytes(pickle.dumps({"a": np.ones(3)}))
    return "a pickle in its place"


OF_BYTES: list[Damage] = [
    flip_bits,
    flip_bits,
    flip_bits,
    cut,
    cut,
    zero_block,
    random_bytes,
    append_bytes,
    prefix_bytes,
]
OF_PLACE: list[Damage] = [empty, remove, folder_instead, dangling_link, linked, swap, pickled]


def change_value(random: Random, content: Any, raw: dict[str, str]) -> tuple[Any, str]:
    """Returns a JSON value with one of its parts removed, added, or replaced by something odd; and what was done."""
    places = [*_places(content)]
    if not places or random.random() < 0.05:
        return random.choice([*ODD, *raw]), "all of it replaced"
    holder, key = random.choice(places)
    where = f"{key!r}"[:40]
    what = random.random()
    if what < 0.2:
        del holder[key]
        return content, f"{where} removed"
    if what < 0.3 and isinstance(holder, dict):
        holder[random.choice(("unknown", "", key + "_", "__class__"))] = random.choice(ODD)
        return content, "a key added"
    if what < 0.4 and isinstance(holder, list):
        holder.insert(key, holder[key])
        return content, f"entry {where} doubled"
    value = holder[key]
    if what < 0.6 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = random.choice((value + 1, -value, value * 10, float(value), str(value)))
    elif what < 0.6 and isinstance(value, str):
        holder[key] = random.choice((value + "x", value[:-1], value.upper(), [value]))
    else:
        holder[key] = random.choice([*ODD, *raw])
    return content, f"{where}: {str(value)[:20]!r} → {str(holder[key])[:20]!r}"


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        found.append((content, key))
        found += _places(value)
    return found


def _written(content: Any, raw: dict[str, str]) -> bytes:
    text = json.dumps(content, indent=1)
    for word, meant in raw.items():
        text = text.replace(f'"{word}"', meant)
    return text.encode()


def change_json(random: Random, path: Path, other: Path | None) -> str:
    content, about = change_value(random, json.loads(path.read_text(encoding="utf-8")), RAW)
    path.write_bytes(_written(content, RAW))
    return about


def change_json_line(random: Random, path: Path, other: Path | None) -> str:
    lines = path.read_bytes().splitlines()
    number = random.randrange(len(lines))
    if random.random() < 0.4:
        what = random.choice(("removed", "doubled", "moved"))
        line = lines.pop(number)
        places = {"removed": [], "doubled": [line, line], "moved": []}[what]
        lines[number:number] = places
        if what == "moved":
            lines.insert(0, line)
    else:
        content, what = change_value(random, json.loads(lines[number]), RAW)
        lines[number] = _written(content, RAW).replace(b"\n", b"")
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return f"line {number}: {what}"


def change_yaml(random: Random, path: Path, other: Path | None) -> str:
    content, about = change_value(random, yaml.safe_load(path.read_text(encoding="utf-8")), YAML_RAW)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    for word, meant in YAML_RAW.items():
        text = text.replace(f"'{word}'", meant)
    path.write_text(text, encoding="utf-8")
    return about


def change_array(random: Random, path: Path, other: Path | None) -> str:
    array = np.load(path)
    what = random.choice([*ARRAYS])
    with np.errstate(all="ignore"):
        changed = ARRAYS[what](random, array.copy())
    file = io.BytesIO()
    np.save(file, changed, allow_pickle=True)
    path.write_bytes(file.getvalue())
    return what


def _put(random: Random, array: np.ndarray, value: Any) -> np.ndarray:
    array.reshape(-1)[random.randrange(array.size)] = value
    return array


def _as_float(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def _largest(array: np.ndarray) -> Any:
    return np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.finfo(array.dtype).max


def _smallest(array: np.ndarray) -> Any:
    return np.iinfo(array.dtype).min if array.dtype.kind in "iu" else -np.inf


ARRAYS: dict[str, Callable[[Random, np.ndarray], np.ndarray]] = {
    "another type of numbers": lambda random, a: a.astype(
        random.choice(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u8", "c8", "?", "S8", "U8"))
    ),
    "a NaN": lambda random, a: _put(random, a if a.dtype.kind == "f" else _as_float(a), np.nan),
    "infinity": lambda random, a: _put(random, a if a.dtype.kind == "f" else _as_float(a), np.inf),
    "a negative entry": lambda random, a: _put(random, a, -random.choice((1, 2, 100))),
    "an entry that is too large": lambda random, a: _put(random, a, random.choice((a.max() + 1, _largest(a)))),
    "an entry that is too small": lambda random, a: _put(random, a, _smallest(a)),
    "another valid entry": lambda random, a: _put(random, a, a.reshape(-1)[random.randrange(a.size)]),
    "order of columns": lambda random, a: np.asfortranarray(a.reshape(-1, 1) if a.ndim == 1 else a),
    "transposed": lambda random, a: a.T if a.ndim > 1 else a[::-1].copy(),
    "one row more": lambda random, a: np.concatenate([a, a[:1]]),
    "one row less": lambda random, a: a[:-1],
    "one more dimension": lambda random, a: a[None],
    "flat": lambda random, a: a.reshape(-1),
    "no rows": lambda random, a: a[:0],
    "a single number": lambda random, a: np.array(a.reshape(-1)[0]),
    "rows in another order": lambda random, a: a[np.random.default_rng(random.randrange(99)).permutation(len(a))],
    "descending": lambda random, a: np.sort(a, axis=0)[::-1].copy(),
    "zeros": lambda random, a: np.zeros_like(a),
    "other byte order": lambda random, a: a.astype(a.dtype.newbyteorder(">")),
    "swapped bytes": lambda random, a: a.byteswap(),
    "Python objects": lambda random, a: a.astype(object),
    "named fields": lambda random, a: np.zeros(a.shape, [("a", "i4"), ("b", "f4")]),
    "dates": lambda random, a: np.zeros(a.shape, "M8[s]"),
}


def change_header(random: Random, path: Path, other: Path | None) -> str:
    """Damages the header of an array: sizes far beyond the file, another version, words that are no header."""
    content = path.read_bytes()
    end = content.index(b"\n") + 1
    header = content[10:end]
    shape = header[header.index(b"(") : header.index(b")") + 1]
    what = random.choice(("huge shape", "negative shape", "version", "length", "call", "deep", "object"))
    changed = {
        "huge shape": header.replace(shape, b"(1099511627776, 8)"),
        "negative shape": header.replace(shape, b"(-1, 4)"),
        "call": header.replace(shape, b"(exit(),)"),
        "deep": header.replace(shape, b"(" * 200 + b"1," + b")" * 200),
        "object": header.replace(b"'<", b"'|O"),
    }.get(what, header)
    version = b"\x09\x09" if what == "version" else content[6:8]
    size = 65_535 if what == "length" else len(changed)
    path.write_bytes(content[:6] + version + size.to_bytes(2, "little") + changed + content[end:])
    return f"header: {what}"


def change_parquet(random: Random, path: Path, other: Path | None) -> str:
    table = pd.read_parquet(path).astype(object)
    column = random.choice([*table.columns])
    row = random.randrange(len(table))
    what = random.choice(
        ("removed", "renamed", "text", "number", "null", "doubled", "no rows", "shuffled", "cell", "added", "nan")
    )
    if what == "removed":
        table = table.drop(columns=column)
    elif what == "renamed":
        table = table.rename(columns={column: "other"})
    elif what == "added":
        table["other"] = 1
    elif what == "doubled":
        table = pd.concat([table, table.iloc[[row]]])
    elif what in ("no rows", "shuffled"):
        table = table.iloc[:0] if what == "no rows" else table.sample(frac=1, random_state=random.randrange(99))
    elif what == "cell":
        table.loc[table.index[row], column] = table[column].iloc[random.randrange(len(table))]
    else:
        value = {"text": "x", "number": 7, "null": None, "nan": float("nan")}[what]
        table[column] = value
    table.infer_objects().to_parquet(path, index=False)
    return f"column {column!r}, row {row}: {what}"


def change_tensors(random: Random, path: Path, other: Path | None) -> str:
    """Writes a safetensors file with the same metadata and one tensor changed, or other metadata."""
    from safetensors.numpy import load, save

    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if random.random() < 0.5:
        changed, about = change_value(random, header, RAW)
        written = _written(changed, RAW)
        path.write_bytes(len(written).to_bytes(8, "little") + written + content[8 + size :])
        return f"header: {about}"
    tensors = dict(load(content))
    name = random.choice([*tensors])
    what = random.choice(("removed", "renamed", "type", "shape", "value"))
    if what in ("removed", "renamed"):
        tensor = tensors.pop(name)
        if what == "renamed":
            tensors["other"] = tensor
    elif what == "value":
        tensors[name] = tensors[name] + np.ones((), tensors[name].dtype)
    else:
        tensors[name] = tensors[name].astype(np.float16) if what == "type" else tensors[name].reshape(-1)[:1].copy()
    path.write_bytes(save(tensors, header.get("__metadata__")))
    return f"tensor {name!r}: {what}"


OF_CONTENT: dict[str, list[Damage]] = {
    ".json": [change_json],
    ".jsonl": [change_json_line],
    ".yaml": [change_yaml],
    ".npy": [change_array, change_array, change_header],
    ".parquet": [change_parquet],
    ".safetensors": [change_tensors],
}


def damage(random: Random, path: Path, other: Path | None) -> str:
    """Damages a file in one of the ways that there are for it, and says what was done."""
    kinds = [OF_BYTES, OF_PLACE, OF_CONTENT.get(path.suffix, OF_BYTES)]
    chosen = random.choices(kinds, weights=(3, 3, 4))[0]
    return random.choice(chosen)(random, path, other)
