"""The sample programs in Aeron's jar, as commands."""

from __future__ import annotations

from pathlib import Path

from tests import java

STREAM_ID = 1001


def sample(name: str, aeron_dir: Path, *arguments: str | Path, **properties: object) -> list[str]:
    """Return the command line of a sample; `ping_channel` becomes the property `aeron.sample.ping.channel`.

    One that brings its own driver has it in `aeron_dir`, with few threads and small logs.
    """
    named: dict[str, object] = {f"aeron.sample.{prop.replace('_', '.')}": value for prop, value in properties.items()}
    named["aeron.sample.idleStrategy"] = "org.agrona.concurrent.BackoffIdleStrategy"
    named["aeron.dir"] = aeron_dir
    named["aeron.threading.mode"] = "SHARED"
    named["aeron.shared.idle.strategy"] = "org.agrona.concurrent.BackoffIdleStrategy"
    named["aeron.term.buffer.length"] = named["aeron.ipc.term.buffer.length"] = "1m"
    return java.java_command(f"io.aeron.samples.{name}", *arguments, properties=named)
