"""`cohabit` and `python -m cohabit`: become the native command."""
from __future__ import annotations

import os
import sys


def main() -> None:
    # Not through the package: start-up should cost no more than it must.
    command = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bin", "cohabit")
    try:
        os.execv(command, ["cohabit", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"cohabit: cannot run {command}: {error.strerror}; reinstall the package")


if __name__ == "__main__":
    main()
