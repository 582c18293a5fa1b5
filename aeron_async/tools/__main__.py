"""Runs the `aeron-async` command as `python -m aeron_async.tools`."""

import sys

from aeron_async.tools.command import main

sys.exit(main())
