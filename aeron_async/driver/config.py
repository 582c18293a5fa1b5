"""The settings of a media driver, and the environment that carries them to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

__all__ = ["DriverConfig", "Profile", "ThreadingMode"]

Profile = Literal["balanced", "low_latency", "low_power"]
ThreadingMode = Literal["DEDICATED", "SHARED_NETWORK", "SHARED"]

# What lets the environment of a process load code into the driver.
_CODE_LOADING = frozenset(
    {
        "AERON_AGENT_ON_START_FUNCTION",
        "AERON_DRIVER_DYNAMIC_LIBRARIES",
        "DYLD_INSERT_LIBRARIES",
        "LD_AUDIT",
        "LD_PRELOAD",
    }
)

_COMMON = {
    "AERON_DIR_DELETE_ON_SHUTDOWN": "true",
    "AERON_DIR_WARN_IF_EXISTS": "false",
    # A full file system is an error when a preallocated log is created, and a SIGBUS when a sparse one is used.
    "AERON_TERM_BUFFER_SPARSE_FILE": "false",
    "AERON_COUNTERS_BUFFER_LENGTH": "2m",
    # What is closed goes, and a heartbeat comes, this often.
    "AERON_TIMER_INTERVAL": "100ms",
    # One log of the balanced profile: Aeron's own threshold would warn all the time in a container's 64 MiB.
    "AERON_LOW_FILE_STORE_WARNING_THRESHOLD": "13m",
}


def _backoff(name: str, max_park: str) -> dict[str, str]:
    return {
        f"AERON_{name}_IDLE_STRATEGY": "backoff",
        f"AERON_{name}_IDLE_STRATEGY_INIT_ARGS": f"10-20-1us-{max_park}",
    }


def _native_resource_agent(period: str) -> dict[str, str]:
    return {
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY": "sleep-ns",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS": period,
    }


# In SHARED mode the conductor's thread also resolves names and allocates logs, so that a slow name server stops its
# heartbeat: no profile uses it.
_PROFILES: dict[str, dict[str, str]] = {
    "balanced": {
        **_COMMON,
        "AERON_THREADING_MODE": "SHARED_NETWORK",
        "AERON_TERM_BUFFER_LENGTH": "4m",
        "AERON_IPC_TERM_BUFFER_LENGTH": "4m",
        **_backoff("CONDUCTOR", "4ms"),
        **_backoff("SHAREDNETWORK", "1ms"),
        **_native_resource_agent("4ms"),
    },
    "low_latency": {
        **_COMMON,
        "AERON_THREADING_MODE": "DEDICATED",
        "AERON_TERM_BUFFER_LENGTH": "16m",
        "AERON_IPC_TERM_BUFFER_LENGTH": "16m",
        "AERON_LOW_FILE_STORE_WARNING_THRESHOLD": "49m",
        **_backoff("CONDUCTOR", "100us"),
        "AERON_SENDER_IDLE_STRATEGY": "spin",
        "AERON_RECEIVER_IDLE_STRATEGY": "spin",
        **_native_resource_agent("1ms"),
    },
    "low_power": {
        **_COMMON,
        "AERON_THREADING_MODE": "SHARED_NETWORK",
        "AERON_TERM_BUFFER_LENGTH": "4m",
        "AERON_IPC_TERM_BUFFER_LENGTH": "4m",
        **_backoff("CONDUCTOR", "16ms"),
        **_backoff("SHAREDNETWORK", "16ms"),
        **_native_resource_agent("16ms"),
    },
}


def _text(variable: str) -> dict[str, Any]:
    return {"variable": variable, "format": str}


def _flag(variable: str) -> dict[str, Any]:
    return {"variable": variable, "format": lambda flag: "true" if flag else "false"}


def _seconds(variable: str) -> dict[str, Any]:
    return {"variable": variable, "format": lambda value: f"{round(value * 1e9)}ns"}


@dataclass(frozen=True, kw_only=True)
class DriverConfig:
    """How a media driver is started.

    A setting that is None comes from the environment of this process (`AERON_*`), and where that is silent, from
    `profile`. `environment` wins over everything. Settings that load code into the driver, such as
    AERON_DRIVER_DYNAMIC_LIBRARIES and LD_PRELOAD, are taken from `environment` only.
    """

    aeron_dir: str | os.PathLike[str] | None = None
    """The directory to serve; None for a private one that goes with the driver."""
    binary: str | os.PathLike[str] | None = None
    """The driver's program, such as a stock `aeronmd`, which is configured by its environment alone; None for ours."""
    profile: Profile = "balanced"
    """`balanced` uses little CPU when idle, `low_latency` spins on two threads, `low_power` wakes up rarely."""

    threading_mode: ThreadingMode | None = field(default=None, metadata=_text("AERON_THREADING_MODE"))
    term_buffer_length: int | None = field(default=None, metadata=_text("AERON_TERM_BUFFER_LENGTH"))
    """Bytes in each of the three terms of a network publication's or an image's log; a power of two."""
    ipc_term_buffer_length: int | None = field(default=None, metadata=_text("AERON_IPC_TERM_BUFFER_LENGTH"))
    """The same for IPC publications."""
    term_buffer_sparse_file: bool | None = field(default=None, metadata=_flag("AERON_TERM_BUFFER_SPARSE_FILE"))
    """Allocate a log's memory as it is used: saves memory, and dies of SIGBUS when the file system is full."""
    mtu_length: int | None = field(default=None, metadata=_text("AERON_MTU_LENGTH"))
    """Bytes in a datagram, Aeron's header included."""
    ipc_mtu_length: int | None = field(default=None, metadata=_text("AERON_IPC_MTU_LENGTH"))
    client_liveness_timeout: float | None = field(default=None, metadata=_seconds("AERON_CLIENT_LIVENESS_TIMEOUT"))
    """Seconds without a keepalive after which the driver gives a client up."""
    image_liveness_timeout: float | None = field(default=None, metadata=_seconds("AERON_IMAGE_LIVENESS_TIMEOUT"))
    publication_unblock_timeout: float | None = field(
        default=None, metadata=_seconds("AERON_PUBLICATION_UNBLOCK_TIMEOUT")
    )
    publication_linger_timeout: float | None = field(
        default=None, metadata=_seconds("AERON_PUBLICATION_LINGER_TIMEOUT")
    )
    timer_interval: float | None = field(default=None, metadata=_seconds("AERON_TIMER_INTERVAL"))
    """Seconds between the driver's checks of its timers, and between its heartbeats; 0.1 in every profile."""
    counters_values_buffer_length: int | None = field(default=None, metadata=_text("AERON_COUNTERS_BUFFER_LENGTH"))
    """Bytes for the values of all counters, 128 each; their labels take four times as much again."""
    resolver_name: str | None = field(default=None, metadata=_text("AERON_DRIVER_RESOLVER_NAME"))
    resolver_interface: str | None = field(default=None, metadata=_text("AERON_DRIVER_RESOLVER_INTERFACE"))
    resolver_bootstrap_neighbor: str | None = field(
        default=None, metadata=_text("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR")
    )

    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables for the driver's environment: any AERON_* setting, and preloads."""

    def __post_init__(self) -> None:
        if self.profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, not {self.profile!r}")
        modes = get_args(ThreadingMode)
        if self.threading_mode is not None and self.threading_mode not in modes:
            raise ValueError(f"threading_mode must be one of {', '.join(modes)}, not {self.threading_mode!r}")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
                raise ValueError(f"{setting.name} must not be negative: {value}")

    @property
    def directory(self) -> str | os.PathLike[str] | None:
        """The directory to serve, where the settings name one."""
        return self.environment.get("AERON_DIR", self.aeron_dir)

    def build_environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The driver's environment, made of that of this process, `inherited`, and of the settings."""
        environment = {**_PROFILES[self.profile], **inherited}
        for variable in _CODE_LOADING & environment.keys():
            del environment[variable]
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value is not None and "variable" in setting.metadata:
                environment[setting.metadata["variable"]] = setting.metadata["format"](value)
        return {**environment, **self.environment}
