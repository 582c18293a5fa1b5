"""What a suite is given: settings, clients, the run's driver, and the one way to measure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.clients import Client
from benchmarks.harness.peer import PeerError
from benchmarks.harness.results import Row, Table


@dataclass(frozen=True)
class Settings:
    """How long, how often, and how large."""

    seconds: float = 0.5
    """The timed window of one repeat."""
    repeats: int = 3
    sizes: tuple[int, ...] = (32, 256, 1024)
    """Payload bytes."""
    workers: tuple[int, ...] = (1, 2)
    """Numbers of processes, or of pairs of them, side by side."""
    quick: bool = False
    """Leave out what a suite can do without."""


@dataclass(frozen=True)
class Cell:
    """A client in one case of a table: what gives the figures of one repeat, or the reason why nothing does."""

    client: str
    way: str = ""
    run: Callable[[], Mapping[str, float]] | None = None
    """Returns a value for each column of the table. Raises `PeerError` where the peer failed or counted wrong."""
    reason: str = ""


@dataclass
class Context:
    """One run of the benchmarks."""

    settings: Settings
    everyone: Sequence[Client]
    """All clients, also those that were not asked for or cannot run here."""
    names: Collection[str] | None
    """Of the clients that were asked for; None for all."""
    aeron_dir: Path
    """The directory of the driver that all peers of the run share."""
    report: Callable[[str], object] = lambda text: None
    """Takes a line about what is being measured now."""
    failures: list[str] = field(default_factory=list)
    _stream_ids: itertools.count[int] = field(default_factory=lambda: itertools.count(20_001))

    @property
    def clients(self) -> list[Client]:
        """Those that were asked for, also the ones that cannot run here."""
        return [client for client in self.everyone if self.wants(client.name)]

    def wants(self, client: str) -> bool:
        """Whether a client was asked for."""
        return self.names is None or client in self.names

    def stream_id(self) -> int:
        """A stream id that nobody else in this run uses."""
        return next(self._stream_ids)

    def measure(self, table: Table, case: str, cells: Sequence[Cell]) -> list[Row]:
        """The rows of one case: repeat by repeat, each cell once in each, so that noise meets all of them alike.

        A cell that fails gives a row that says so, and the run goes on; it will end with an error.
        """
        values: dict[int, list[Mapping[str, float]]] = {index: [] for index in range(len(cells))}
        reasons = {index: cell.reason for index, cell in enumerate(cells)}
        for repeat in range(self.settings.repeats):
            for index, cell in enumerate(cells):
                if cell.run is None or reasons[index]:
                    continue
                name = f"{cell.client}: {cell.way}" if cell.way else cell.client
                self.report(f"{table.title}, {case}: {name} ({repeat + 1}/{self.settings.repeats})")
                try:
                    values[index].append(cell.run())
                except PeerError as error:
                    # The rest may hold the paths of this machine.
                    reasons[index] = f"failed: {str(error).splitlines()[0]}"
                    self.failures.append(f"{table.title}, {case}: {name}: {error}")
        return [
            Row(table, case, cell.client, cell.way, reason=reasons[index])
            if reasons[index]
            else Row(
                table,
                case,
                cell.client,
                cell.way,
                {column.name: tuple(value[column.name] for value in values[index]) for column in table.columns},
            )
            for index, cell in enumerate(cells)
        ]
