# The CPython face of the C core, from native/speedups. Where it is absent, the classes of _pure_*.py stand in for it.
from typing import Final

FINGERPRINT: Final[str]
"""Which sources of the C core it was built from."""

class PublicationPath:
    def __init__(self, address: int) -> None: ...
