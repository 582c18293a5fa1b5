"""The media driver: which one a client uses, how it is configured, started, watched and stopped.

Whoever starts a driver holds a shared lock on its *lease*, a file beside the driver's directory; for a shared driver,
everybody who uses it does. The driver stops by itself when it can lock the lease for itself alone. While it lives, it
holds the lock on a second file, *alive*: whoever gets that lock is the one to start the next driver there. The kernel
takes locks away from the dead, so neither needs a keep-alive, a process id, or a clean exit.
"""

from aeron_async.driver.config import DriverConfig
from aeron_async.driver.media_driver import MediaDriver
from aeron_async.driver.sources import DriverSource, choose_driver

__all__ = ["DriverConfig", "DriverSource", "MediaDriver", "choose_driver"]
