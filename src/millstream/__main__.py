"""`python -m millstream` is `millstream`, where the latter is not on the path."""

from __future__ import annotations

import sys

from millstream.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
