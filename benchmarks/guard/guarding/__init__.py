"""How the guard is measured: what it covers, whether results stay the same, what it costs, how fast it stops.

Tenants, modes, records and figures are those of the benchmarks of the isolated domain (the package `sharing`), and some
programs are those of the compatibility matrix (`matrix`); both are found from here on.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ISOLATED = HERE.parent / "isolated"
COMPATIBILITY = HERE.parent.parent / "conformance" / "compatibility"

# Behind this folder, which has a `run` of its own.
sys.path += [str(folder) for folder in (ISOLATED, COMPATIBILITY) if str(folder) not in sys.path]
