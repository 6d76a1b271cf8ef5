"""What `cohabit doctor` looks at in an environment: the frameworks, and what was asked for by name. The
REQUESTED files are those that pip writes (PEP 376); which module a distribution has is told by its RECORD."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_env import Env, env  # noqa: E402,F401


def distribution(env: Env, name: str, files: dict[str, str], asked: bool = True, requires: str = "") -> None:
    for path, text in files.items():
        env.file(path, text)
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    env.file(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
             + (f"Requires-Dist: {requires}\n" if requires else "") + "\n")
    env.file(f"{info}/RECORD", "".join(f"{path},,\n" for path in files))
    if asked:
        env.file(f"{info}/REQUESTED")


def orders(cohabit: str, env: Env) -> dict[str, str]:
    done = subprocess.run([cohabit, "doctor", env.python, "--format", "json"], capture_output=True, text=True)
    return {", ".join(order["imports"]): order["verdict"] for order in json.loads(done.stdout)["orders"]}


def test_what_was_asked_for_is_looked_at(cohabit: str, env: Env) -> None:  # noqa: F811
    """Not what comes along, nor what another that was asked for requires; what it names in an extra, only if it is a part of it."""
    distribution(env, "good-package", {"good_package/__init__.py": "", "tests/__init__.py": ""}, requires="helper")
    distribution(env, "Broken", {"broken.py": "import nothing_of_this_name\n", "_broken.py": ""},
                 requires="broken-part; extra == 'more'\nRequires-Dist: other; extra == 'more'")
    distribution(env, "helper", {"helper.py": ""})
    distribution(env, "broken_part", {"broken_part.py": "raise ImportError('import broken first')\n"})
    distribution(env, "Other", {"other.py": "import sys\n"})
    distribution(env, "along", {"along.py": "import nothing_either\n"}, asked=False)
    assert orders(cohabit, env) == {"good_package": "sound", "broken": "unsound", "other": "sound"}


def test_the_module_that_has_most_files(cohabit: str, env: Env) -> None:  # noqa: F811
    distribution(env, "many", {"first.py": "", "second/__init__.py": "", "second/more.py": "", "_third.py": ""})
    assert orders(cohabit, env) == {"second": "sound"}


def test_packages_in_a_namespace(cohabit: str, env: Env) -> None:  # noqa: F811
    """PEP 420: nothing is at the top but a directory that belongs to nobody. The outermost packages count, and modules beside them."""
    distribution(env, "space-part", {"space/part/__init__.py": "import nothing_of_this_name\n", "space/part/inner/__init__.py": "",
                                     "space/_own/__init__.py": ""})
    distribution(env, "other", {"space/wide/other.py": "", "docs/read.py": "", "other-data/x/y.py": ""})
    assert orders(cohabit, env) == {"space.part": "unsound", "space.wide.other": "sound"}


def test_native_ones_in_pairs_where_they_are_few(cohabit: str, env: Env) -> None:  # noqa: F811
    distribution(env, "aa", {"aa/__init__.py": "", "aa/lib.so": ""})
    distribution(env, "bb", {"bb/__init__.py": "", "bb/lib.so": ""})
    distribution(env, "pure", {"pure.py": ""})
    assert list(orders(cohabit, env)) == ["aa", "bb", "aa, bb", "bb, aa", "pure"]
    names = [letter * 2 for letter in "abcdefghijk"]
    for name in names[2:]:
        distribution(env, name, {f"{name}/__init__.py": "", f"{name}/lib.so": ""})
    pairs = [f"{one}, {other}" for one in names[:-1] for other in names[:-1] if one != other]
    assert sorted(orders(cohabit, env)) == sorted([*names, *pairs, "pure"])


def test_the_table_has_columns_for_pairs_only(cohabit: str, env: Env) -> None:  # noqa: F811
    distribution(env, "aa", {"aa/__init__.py": "", "aa/lib.so": ""})
    distribution(env, "bb", {"bb/__init__.py": "", "bb/lib.so": ""})
    distribution(env, "pure", {"pure.py": ""})
    done = subprocess.run([cohabit, "doctor", env.python], capture_output=True, text=True)
    assert [line.split() for line in done.stdout.splitlines()[-4:]] == [
        ["alone", "then", "aa", "then", "bb"], ["aa", "sound", "-", "sound"], ["bb", "sound", "sound", "-"],
        ["pure", "sound", "-", "-"]]
