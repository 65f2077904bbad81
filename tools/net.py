"""A net under moves of code: digests of the draws of every method, recorded once and compared after each change.

    python tools/net.py record                          at the commit that is trusted
    python tools/net.py compare                         after a change: every row must have the digests it had
    python tools/net.py compare --only 'plain/*' --only resumed/default
    python tools/net.py record --only 'split/*hmc*' --reason "one HMC for all methods"    after a change on purpose
    python tools/net.py list

The bits of a draw depend on the processor and on jaxlib, so `net.json` keeps one table for each; on another machine,
record first, at the commit that is trusted: PYTHONPATH=/path/to/its/src python tools/net.py record.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("net.json")
Digests = dict[str, str]


def set_flags() -> None:
    """Make XLA compile quickly, as the tests do; from jaxlib 0.11.1 on it ends a process that names the emitters."""
    numbers = tuple(int(part) for part in version("jaxlib").split(".")[:3])
    emitters = " --xla_cpu_use_fusion_emitters=false" if numbers < (0, 11, 1) else ""
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0" + emitters


def machine() -> str:
    """Name what the bits of a draw depend on besides the code: processor, its vectors, jaxlib, and NumPy."""
    fields = {}
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = fields.get("flags", "").split()
    vectors = next((level for level in ("avx512f", "avx2", "avx") if level in flags), platform.machine())
    numbers = " ".join(fields.get(name, "?") for name in ("vendor_id", "cpu family", "model"))
    return f"{numbers} {vectors}, jaxlib {version('jaxlib')}, numpy {version('numpy')}"


def digests(result: Any) -> Digests:
    """Hash the points, the weights and every statistic of a run."""
    import jax  # after the flags are set
    import numpy as np

    def digest(*arrays: Any) -> str:
        content = hashlib.sha256()
        for array in arrays:
            array = np.ascontiguousarray(array)
            content.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        return content.hexdigest()[:8]

    statistics = {f"statistics.{name}": digest(values) for name, values in sorted(result.statistics.items())}
    return {"points": digest(*jax.tree.leaves(result.points)), "weights": digest(result.weights)} | statistics


def differences(before: Digests, after: Digests) -> list[str]:
    """Name the parts of a row whose bits changed; a statistic that is new is no change.

    >>> differences({"points": "a", "weights": "b"}, {"points": "a", "weights": "c", "statistics.new": "d"})
    ['weights']
    """
    return [part for part, digest in before.items() if after.get(part) != digest]


def run(names: list[str]) -> dict[str, Digests | str]:
    """Run rows and return their digests, or in one line why a row failed."""
    import jax

    import net_rows

    found: dict[str, Digests | str] = {}
    for name in names:
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = digests(net_rows.ROWS[name]())
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            traceback.print_exc(limit=-2)
        jax.clear_caches()
        print(f"{time.perf_counter() - began:6.1f} s  {name}", file=sys.stderr, flush=True)
    return found


def record(found: dict[str, Digests | str], reason: str | None) -> int:
    """Write the digests; rows that had others need a reason, which is kept with them."""
    tables = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    table = tables.setdefault(machine(), {"rows": {}, "changes": []})
    failed = [name for name, row in found.items() if isinstance(row, str)]
    for name in failed:
        print(f"not recorded: {name}: {found[name]}")
    rows = {name: row for name, row in found.items() if isinstance(row, dict)}
    changed = [name for name, row in rows.items() if differences(table["rows"].get(name, {}), row)]
    if changed and reason is None:
        print(f"--reason must say why these rows changed: {', '.join(changed)}.")
        return 1
    if changed:
        table["changes"].append({"rows": changed, "reason": reason, "after": commit()})
    table.setdefault("recorded_at", commit())
    table["rows"] = dict(sorted((table["rows"] | rows).items()))
    TABLE.write_text(one_line_per_row(tables))
    print(f"{len(rows)} rows recorded, {len(changed)} of them changed, for {machine()}")
    return int(bool(failed))


def one_line_per_row(tables: dict[str, Any]) -> str:
    """Write tables as JSON that a person can read, and in which a changed row is one changed line.

    >>> print(one_line_per_row({"m": {"rows": {"a": {"points": "1"}}}}), end="")
    {
     "m": {
      "rows": {
       "a": {"points": "1"}
      }
     }
    }
    """
    text = json.dumps(tables, indent=1)
    return re.sub(r'\{\s+("points": [^}]*?)\s+\}', lambda row: "{" + re.sub(r",\s+", ", ", row[1]) + "}", text) + "\n"


def compare(found: dict[str, Digests | str]) -> int:
    """Print which rows differ from the table, and return how many do."""
    table = json.loads(TABLE.read_text()).get(machine()) if TABLE.exists() else None
    if table is None:
        print(f"no digests for {machine()}: record them at the commit that is trusted.")
        return 1
    bad = 0
    for name, row in found.items():
        before = table["rows"].get(name)
        if isinstance(row, str):
            said = row
        elif before is None:
            said = "is not recorded"
        else:
            said = ", ".join(differences(before, row))
        if said:
            bad += 1
            print(f"{name}: {said}")
    print(f"{len(found) - bad} of {len(found)} rows are as recorded")
    return int(bool(bad))


def commit() -> str:
    """Name the commit of the library that ran, which PYTHONPATH may have chosen."""
    import pseudo_extended

    where = Path(str(pseudo_extended.__file__)).parent
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=where, capture_output=True, text=True)
    return asked.stdout.strip()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compare", "list"))
    parser.add_argument("--only", action="append", metavar="PATTERN", help="rows to run; may be given several times")
    parser.add_argument("--reason", help="why rows that were recorded have changed")
    options = parser.parse_args()
    set_flags()
    import net_rows

    patterns = options.only or ["*"]
    names = [name for name in net_rows.ROWS if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    if not names:
        print(f"--only must match a row; got {', '.join(patterns)}, and `list` names them.")
        return 1
    if options.command == "list":
        print(*names, sep="\n")
        return 0
    found = run(names)
    return record(found, options.reason) if options.command == "record" else compare(found)


if __name__ == "__main__":
    sys.exit(main())
