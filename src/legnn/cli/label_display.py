"""What the commands about labels print: labels that look wrong, nodes to label next, audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from legnn.cli.display import print_line, print_text
from legnn.errors import plural

if TYPE_CHECKING:
    import pandas as pd

    from legnn.labels.audit import Audit
    from legnn.labels.check import LabelCheck

_out = Console(markup=False, emoji=False)


def show_label_check(found: LabelCheck, most: int) -> None:
    """Prints the labels that are most likely wrong with the evidence, and how many are expected to be."""
    rows = found.table.head(most)
    title = f"{len(rows):,} of {len(found.table):,} labels, the most suspicious first"
    caption = (
        "p: of the label and of the suggested class; neighbors: labeled ones with the label, the suggested, of all"
    )
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in ("id", "label", "suggested", "score", "p", "neighbors", "split"):
        table.add_column(header, justify="right" if header in ("score", "p", "neighbors") else "left")
    for row in rows.to_dict("records"):
        p = f"{row['p_label']:.3f}, {row['p_suggested']:.3f}"
        around = f"{row['neighbors_label']:g}, {row['neighbors_suggested']:g} of {row['neighbors']:g}"
        table.add_row(
            *(str(row[name]) for name in ("id", "label", "suggested")),
            f"{row['score']:.3f}",
            p,
            around,
            str(row["split"]),
        )
    _out.print(table)
    share = found.expected_errors / max(len(found.table), 1)
    print_line(
        f"wrong labels: at most about {found.expected_errors:,.0f} ({100 * share:.1f} %); nodes that a model cannot "
        "tell and classes that overlap are among them"
    )


MOST_PROPOSED = 20
"""Most nodes in the table of those to label; a file has all."""


def show_next_labels(found: pd.DataFrame) -> None:
    """Prints the nodes to label next and what speaks for each."""
    title = f"{len(found):,} nodes to label, best first"
    caption = "density, reach: of nodes that no label covers yet, those like it and those its label would travel to"
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in found.columns:
        table.add_column(str(header), justify="left" if header in ("id", "prediction") else "right")
    for row in found.head(MOST_PROPOSED).to_dict("records"):
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    _out.print(table)
    more = len(found) - MOST_PROPOSED
    if more > 0:
        print_line(f"and {more:,} more; --out FILE.csv has all")


def show_audit(audit: Audit) -> None:
    """Prints the method and the result of each check, then the warnings and leaks."""
    table = Table(title=f"audit of a run on {audit.data}", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("check", overflow="fold")
    table.add_column("method, and result", overflow="fold")
    table.add_column("how many", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    color = {"failed": "red", "warning": "yellow", "passed": "green", "not applicable": "dim"}
    for finding in audit.findings:
        count = f"{finding.count:,}" if finding.count else ""
        verdict = Text(finding.verdict, style=color[finding.verdict])
        table.add_row(finding.check, f"{finding.method}: {finding.detail}", count, verdict)
    _out.print(table)
    for finding in (*audit.warnings, *audit.leaks):
        print_text(f"{finding.verdict}: {finding.check}: {finding.detail}")
    checks = sum(finding.verdict != "not applicable" for finding in audit.findings)
    summary = f"{plural(len(audit.leaks), 'leak')} and {plural(len(audit.warnings), 'warning')}"
    print_line(f"{summary} in {plural(checks, 'check')}")
