"""UDP through the kernel: over loopback, and between two namespaces over virtual Ethernet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.harness.clients import OURS, PURE, RUST, Client
from benchmarks.harness.context import Cell, Context
from benchmarks.harness.driver import running_driver
from benchmarks.harness.namespaces import NamespacesError, joined_namespaces
from benchmarks.harness.results import Row, Table, Target, select
from benchmarks.peers.python import ways
from benchmarks.suites._cells import DELAYS, Measure, cells
from benchmarks.suites._exchange import End, exchange
from benchmarks.suites._stream import COLUMNS, SIZE, choose_publisher, stream

NAME = "udp"

ROUND_TRIPS = Table(
    "request and reply, kernel UDP",
    DELAYS,
    "As in the suite `rpc`. On fewer than four cores this measures the scheduler more than anything else: two "
    "processes spin, and so do the network threads of the drivers.",
)
STREAM = Table(f"ticks of {SIZE} bytes flat out, kernel UDP", COLUMNS, "As in the suite `market`.")

_CLIENTS = (RUST, OURS, PURE)
_WAYS = (ways.MESSAGES, ways.AS_ARRAY, ways.PAYLOADS, "")

_FIRST_PORT = 24_321

# A network thread that sleeps would add its sleep to each delay.
_DRIVER = {"AERON_SHAREDNETWORK_IDLE_STRATEGY": "yield"}

LOOPBACK, NAMESPACES = "loopback", "namespaces, MTU 1500"


@dataclass(frozen=True)
class _Host:
    """Where one of the two processes runs."""

    aeron_dir: Path
    address: str
    prefix: tuple[str, ...] = ()

    def end(self, port: int) -> End:
        return End(self.aeron_dir, f"aeron:udp?endpoint={self.address}:{port}", self.prefix)


def run(context: Context) -> list[Row]:
    """Both tables in both places."""
    rows = []
    with _loopback() as hosts:
        rows += _measure(context, LOOPBACK, *hosts)
    try:
        with _namespaces() as hosts:
            rows += _measure(context, NAMESPACES, *hosts)
    except NamespacesError as error:
        cell = Cell("all", reason=str(error))
        rows += [row for table in (ROUND_TRIPS, STREAM) for row in context.measure(table, NAMESPACES, [cell])]
    return sorted(rows, key=lambda row: (ROUND_TRIPS, STREAM).index(row.table))


def targets(rows: Sequence[Row]) -> list[Target]:
    """T9, which has no bounds: reported."""
    found = []
    for case in (LOOPBACK, NAMESPACES):
        for table in (ROUND_TRIPS, STREAM):
            ours, rust = select(rows, table, case, OURS), select(rows, table, case, RUST)
            statement = f"{table.title}, {table.main.name} against rust"
            found.append(Target.ratio(f"T9, {case}", statement, ours, rust))
    return found


def _measure(context: Context, case: str, one: _Host, other: _Host) -> list[Row]:
    publisher = choose_publisher(context)
    # A driver that still closes an endpoint would refuse it to the next.
    ports = count(_FIRST_PORT)

    def ask(client: Client, way: str) -> Mapping[str, float]:
        ends = one.end(next(ports)), other.end(next(ports))
        return exchange(context, client, way, *ends, pairs=1, size=context.settings.sizes[0])

    def consume(client: Client, way: str) -> Mapping[str, float]:
        return stream(context, publisher, client, way, one.end(next(ports)), other.end(next(ports)))

    def chosen(mode: str, measure: Measure) -> list[Cell]:
        clients = [client for client in context.clients if client.name in _CLIENTS]
        return [cell for cell in cells(clients, mode, measure) if cell.way in _WAYS]

    return [
        *context.measure(ROUND_TRIPS, case, chosen("rpc-client", ask)),
        *context.measure(STREAM, case, chosen("market-consumer", consume)),
    ]


@contextmanager
def _loopback() -> Iterator[tuple[_Host, _Host]]:
    with running_driver(environment=_DRIVER) as driver:
        host = _Host(driver.aeron_dir, "127.0.0.1")
        yield host, host


@contextmanager
def _namespaces() -> Iterator[tuple[_Host, _Host]]:
    with (
        joined_namespaces() as (one, other),
        running_driver(one.prefix, environment=_DRIVER) as driver,
        running_driver(other.prefix, environment=_DRIVER) as opposite,
    ):
        yield (
            _Host(driver.aeron_dir, one.address, one.prefix),
            _Host(opposite.aeron_dir, other.address, other.prefix),
        )
