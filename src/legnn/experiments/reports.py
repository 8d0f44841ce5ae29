"""Writes what an experiment came to: Markdown, CSV and picture."""

from __future__ import annotations

import re
from pathlib import Path

from legnn.analysis.pictures import save_picture
from legnn.analysis.tables import to_markdown
from legnn.experiments.experiment import Report
from legnn.experiments.plan import Plan
from legnn.files import atomic_write, write_text


def write_report(plan: Plan, report: Report, command: str) -> list[Path]:
    """Writes the files of a report to the folder `reports`, and returns them, the Markdown file first."""
    folder, name = plan.request.out / "reports", plan.experiment.name
    files = [folder / f"{name}.md", folder / f"{name}.csv"]
    with atomic_write(files[1]) as file:
        report.values.to_csv(file, index=False)
    if report.figure is not None:
        files.append(folder / f"{name}.png")
        save_picture(report.figure, files[-1])
    write_text(files[0], _markdown(plan, report, command))
    return files


def _markdown(plan: Plan, report: Report, command: str) -> str:
    parts = [f"# {plan.experiment.title}", f"`{command}`"]
    if report.figure is not None:
        parts.append(f"![{plan.experiment.title}]({plan.experiment.name}.png)")
    for heading, table in report.tables.items():
        parts += [f"## {heading}" if heading else "", to_markdown(table).rstrip()]
    notes = [*report.notes, *_notes_of_data(plan), *_machines(plan)]
    parts += ["\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _notes_of_data(plan: Plan) -> list[str]:
    """Notes that came with the data, and with runs that were trained otherwise than asked.

    Of notes that differ in their numbers alone, such as those of synthetic graphs, the first.
    """
    lines: dict[str, str] = {}
    for cell in plan.cells():
        for result in plan.results(cell)[:1]:
            for note in result.notes:
                line = f"{cell.source}: {note}"
                lines.setdefault(re.sub(r"[\d,]+", "", line), line)
    return list(lines.values())


def _machines(plan: Plan) -> list[str]:
    lines: dict[str, None] = {}
    for cell in plan.cells():
        for result in plan.results(cell)[:1]:
            versions = ", ".join(f"{name} {result.versions[name]}" for name in ("python", "legnn", "torch"))
            lines[f"Trained on {result.device} in {result.precision}; {versions}."] = None
    return list(lines)
