# The CPython face of the C core, from native/speedups. Its classes stand for those of the same names in _pure_*.py,
# which say what they do.
from typing import Final

from aeron_async._pure_messages import BatchPath as BatchPath
from aeron_async._pure_messages import Header as Header
from aeron_async._pure_messages import Message as Message
from aeron_async._pure_publication import PublicationPath as PublicationPath
from aeron_async._pure_reading import ReadablePath as ReadablePath
from aeron_async._pure_reading import ReaderPath as ReaderPath

FINGERPRINT: Final[str]
"""Which sources of the C core it was built from."""
