"""Which Python has the frameworks."""
import os
import sys

PYTHON = os.environ.get("COHABIT_GPU_PYTHON", sys.executable)
