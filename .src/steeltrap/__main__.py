"""`python -m steeltrap` is the command `steeltrap`."""

from __future__ import annotations

import sys

from steeltrap.harness.cli import main

sys.exit(main())
