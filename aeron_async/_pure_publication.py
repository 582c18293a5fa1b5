"""The message path of publications over `_native`: what stands in for the class of the same name in `_speedups`."""

from __future__ import annotations

from aeron_async._native import ffi


class PublicationPath:
    """The hot methods of a publication, over the `aa_publication_t` at an address, which the subclass keeps alive."""

    def __init__(self, address: int) -> None:
        self._path = ffi.cast("aa_publication_t *", address)
