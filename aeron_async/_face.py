"""Which face of the C core the message path uses: `_speedups`, where there is one for this CPython, or `_native` alone.

Both have the same classes, which the package's own build upon. AERON_ASYNC_PURE=1 in the environment asks for `_native`
alone.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from aeron_async._log import log
from aeron_async._native import ffi, lib


def _has_speedups() -> bool:
    if os.environ.get("AERON_ASYNC_PURE", "0") not in ("", "0"):
        return False
    try:
        found = import_module("aeron_async._speedups").FINGERPRINT
        expected = ffi.string(lib.aa_build_fingerprint()).decode()
        if found != expected:
            raise ImportError(
                f"aeron_async._speedups was built from other sources ({found}) than aeron_async._native ({expected}): "
                "build both again"
            )
    except ModuleNotFoundError:
        return False
    except ImportError as error:
        log.warning("speedups_refused", reason=str(error))
        return False
    return True


NAME = "speedups" if _has_speedups() else "pure"
"""The face in use."""

# A name that is imported as itself is there for others to import.
if TYPE_CHECKING or NAME == "speedups":
    from aeron_async._speedups import BatchPath as BatchPath
    from aeron_async._speedups import Header as Header
    from aeron_async._speedups import Message as Message
    from aeron_async._speedups import PublicationPath as PublicationPath
    from aeron_async._speedups import ReadablePath as ReadablePath
    from aeron_async._speedups import ReaderPath as ReaderPath
else:
    from aeron_async._pure_messages import BatchPath as BatchPath
    from aeron_async._pure_messages import Header as Header
    from aeron_async._pure_messages import Message as Message
    from aeron_async._pure_publication import PublicationPath as PublicationPath
    from aeron_async._pure_reading import ReadablePath as ReadablePath
    from aeron_async._pure_reading import ReaderPath as ReaderPath
