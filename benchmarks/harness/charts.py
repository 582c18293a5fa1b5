"""Charts of a suite's rows, as SVG files that are the same for the same rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.harness.clients import OURS, PURE
from benchmarks.harness.report import cases_of, readable, tables_of
from benchmarks.harness.results import Row, Table
from benchmarks.harness.statistics import spread_of

# Names of elements are random unless they are salted; text stays text, in the reader's own font.
_STYLE: dict[Any, Any] = {"svg.hashsalt": "aeron_async", "svg.fonttype": "none", "font.family": "sans-serif"}

_COLOURS = {OURS: "#0b6e99", PURE: "#7fb6cc"}
_OTHERS = "#9a9a9a"


def write_charts(folder: Path, suite: str, rows: Sequence[Row]) -> list[Path]:
    """One file for each table; a panel for each of its cases."""
    paths = []
    for table, members in tables_of(rows):
        cases = [(case, [row for row in found if row.main]) for case, found in cases_of(members)]
        cases = [(case, found) for case, found in cases if found]
        if cases:
            name = re.sub(r"[^a-z0-9]+", "-", f"{suite} {table.title}".lower()).strip("-")
            paths.append(folder / f"{name}.svg")
            with rc_context(_STYLE):
                _write(paths[-1], f"{suite}: {table.title}", table, cases)
    return paths


def _write(path: Path, title: str, table: Table, cases: Sequence[tuple[str, Sequence[Row]]]) -> None:
    heights = [max(2, len(rows)) for _, rows in cases]
    figure = Figure(figsize=(9, 1.4 + 0.3 * sum(heights) + 0.6 * len(cases)), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(len(cases), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axes, (case, rows) in zip(panels, cases, strict=True):
        _draw(axes, table, case, rows)
    direction = "more is better" if table.main.more_is_better else "less is better"
    panels[-1].set_xlabel(f"{table.main.name}: median of {len(cases[0][1][0].main)}, line from min to max; {direction}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _draw(axes: Axes, table: Table, case: str, rows: Sequence[Row]) -> None:
    spreads = [spread_of(row.main) for row in rows]
    places = range(len(rows))
    medians = [spread.median for spread in spreads]
    lengths = [[spread.median - spread.low for spread in spreads], [spread.high - spread.median for spread in spreads]]
    colours = [_COLOURS.get(row.client, _OTHERS) for row in rows]
    axes.barh(places, medians, xerr=lengths, color=colours, ecolor="#404040", height=0.7)
    axes.set_yticks(places, [row.label for row in rows])
    axes.invert_yaxis()
    axes.set_title(case, loc="left", fontsize="medium")
    if min(medians) > 0 and max(medians) > 20 * min(medians):
        axes.set_xscale("log")
        axes.set_title("logarithmic", loc="right", fontsize="small")
    # Room for the figures beside the bars.
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value, table.main.unit)))
    axes.spines[["top", "right"]].set_visible(False)
    for place, spread in zip(places, spreads, strict=True):
        axes.annotate(
            readable(spread.median, table.main.unit),
            (spread.high, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
