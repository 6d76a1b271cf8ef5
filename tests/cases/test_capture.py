"""A bundle of `cohabit capture`: doctor says the same of it when the original is gone and the machine is another,
nothing of the user is in it, and what a stranger's bundle may do is limited.

Bundles are read here by Python's tarfile and the zstd library, hostile ones are written by tarfile."""
from __future__ import annotations

import base64
import ctypes.util
import hashlib
import io
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import casefile  # noqa: E402

SITE = "env/lib/python3.11/site-packages"
WORLD = f"""program env/bin/python3
file env/lib/python3.11/os.py
file env/lib/python3.11/random.py
file {SITE}/app/__init__.py import os\\nif os.environ.get("APP_MODE") == "full":\\n    from . import fast\\nimport absent
lib {SITE}/app/fast.so
  needed libdeep.so libmissing.so.2
lib {SITE}/app/libdeep.so
  defs deep
lib elsewhere/libdeep.so
  defs deep
file {SITE}/torch/__init__.py import absent
file {SITE}/other/__init__.py from other.deep import x
file {SITE}/other/deep/__init__.py x = 1
dist {SITE} app 1.0
  requires other>=2
  lists app/__init__.py
  lists app/fast.so
file private/diary.txt dear diary
file project/random.py
file project/main.py try:\\n    import app\\nexcept ImportError:\\n    pass\\nimport absent
file project/cohabit.toml [severity]\\nPY302 = "warning"
"""
SECRETS = [b"hush-hush-hush", b"pass-word", b"chan-token", b"par-token"]
ADDRESS = "https://amanda:pass-word@index.example/t/chan-token/app?token=par-token"


def run(cohabit: str, *words: str | Path, code: int | None, cwd: Path, **variables: str) -> subprocess.CompletedProcess:
    done = subprocess.run([cohabit, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=cwd,
                          env={"PATH": os.environ["PATH"], **variables})
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done


class Machine:
    """Where the world is, with a user who has settings and secrets."""

    def __init__(self, cohabit: str, home: Path):
        self.cohabit, self.home = cohabit, home
        casefile.build_world(WORLD, home)
        (home / SITE / "app-1.0.dist-info" / "direct_url.json").write_text(
            json.dumps({"url": ADDRESS, "dir_info": {"editable": True}}))
        (home / SITE / "app" / "fast.so").open("ab").write(b"\0" * 3_000_000)
        (home / os.fsdecode(f"{SITE}/caf".encode() + b"\xe9 \n")).write_text("x")  # a name is bytes
        (home / "env" / "bin" / "python3").chmod(0o755)
        (home / "link").symlink_to(home / "env")  # a link on the way
        for settings in ("env/pip.conf", "project/.env", ".netrc"):
            (home / settings).write_text(f"[global]\nindex-url={ADDRESS}\nmachine index.example password hush-hush-hush\n")
        self.variables = {"HOME": str(home), "LD_LIBRARY_PATH": str(home / "elsewhere"), "APP_MODE": "full",
                          "HUB_TOKEN": "hush-hush-hush", "TF_FORCE_GPU_ALLOW_GROWTH": "1",
                          "PIP_INDEX_URL": ADDRESS, "XLA_FLAGS": ADDRESS}

    def run(self, *words: str | Path, code: int | None) -> str:
        return run(self.cohabit, *words, code=code, cwd=self.home / "project", **self.variables).stdout

    def capture(self, out: Path, *subject: str | Path) -> Path:
        self.run("capture", *subject, "--out", out, code=0)
        return out


class Elsewhere:
    """Another machine: other variables, another directory with settings of its own."""

    def __init__(self, cohabit: str, place: Path):
        self.cohabit, self.place, self.scratch = cohabit, place, place / "tmp"
        self.scratch.mkdir(parents=True)
        (place / "cohabit.toml").write_text('[severity]\nLD201 = "off"\n')
        self.variables = {"TMPDIR": str(self.scratch), "PYTHONPATH": str(place), "LD_LIBRARY_PATH": str(place),
                          "JAX_NONSENSE": "1", "HOME": str(place)}

    def run(self, *words: str | Path, code: int | None) -> subprocess.CompletedProcess:
        done = run(self.cohabit, *words, code=code, cwd=self.place, **self.variables)
        assert list(self.scratch.iterdir()) == []
        return done

    def report(self, *words: str | Path, code: int | None = 1) -> dict:
        return json.loads(self.run("doctor", *words, "--format", "json", code=code).stdout)


@pytest.fixture
def machine(cohabit: str, tmp_path: Path) -> Machine:
    return Machine(cohabit, tmp_path / "home" / "amanda")


@pytest.fixture
def elsewhere(cohabit: str, tmp_path: Path) -> Elsewhere:
    return Elsewhere(cohabit, tmp_path / "elsewhere")


def unpacked(bundle: Path) -> tarfile.TarFile:
    library = ctypes.CDLL(ctypes.util.find_library("zstd"))
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    data, room = bundle.read_bytes(), ctypes.create_string_buffer(256 << 20)
    size = library.ZSTD_decompress(room, len(room), data, len(data))
    assert size <= len(room)
    return tarfile.open(fileobj=io.BytesIO(room.raw[:size]))


@pytest.mark.parametrize("subject", [["../link", "--imports", "app"], ["../link", "main.py"], ["../link"],
                                     ["../env", "-m", "app"]])
def test_doctor_says_the_same_of_a_bundle(machine: Machine, elsewhere: Elsewhere, tmp_path: Path,
                                          subject: list[str]) -> None:
    before = json.loads(machine.run("doctor", *subject, "--format", "json", code=None))
    assert before["findings"]
    bundle = machine.capture(tmp_path / "world.tar.zst", *subject)
    assert bundle.stat().st_size < 2_000_000
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.report(bundle, code=None) == before


PLANNED = [path for path in casefile.all_cases()
           if (command := casefile.Case(path).sections["command"]).startswith("doctor WORLD")
           and "--replay" not in command and "--config" not in command]


@pytest.mark.parametrize("path", PLANNED, ids=[path.stem for path in PLANNED])
def test_every_case_is_the_same_from_a_bundle(path: Path, cohabit: str, elsewhere: Elsewhere, tmp_path: Path) -> None:
    case, world, bundle = casefile.Case(path), tmp_path / "world", tmp_path / "world.tar.zst"
    before = json.loads(casefile.run_case(case, cohabit, world, "json"))
    words = shlex.split(case.sections["command"].replace("WORLD", str(world)))[1:]
    del words[words.index("--format"):words.index("--format") + 2]
    run(cohabit, "capture", *words, "--out", bundle, code=0, cwd=tmp_path)
    world.rename(tmp_path / "gone")
    after = elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout
    assert json.loads(after.replace(str(world), "WORLD")) == before


def test_no_secret_and_nothing_of_the_home_directory_is_in_it(machine: Machine, tmp_path: Path) -> None:
    for subject in (["../link", "--imports", "app"], ["../link", "main.py"], [machine.home / "env"]):
        with unpacked(machine.capture(tmp_path / "world.tar.zst", *subject)) as archive:
            names = archive.getnames()
            assert any(name.endswith(f"{SITE}/app-1.0.dist-info/direct_url.json") for name in names)
            assert not any("diary" in name or "private" in name for name in names)
            whole = b"".join(archive.extractfile(entry).read() for entry in archive if entry.isreg())
        assert b"index.example" in whole
        assert not [secret for secret in SECRETS if secret in whole]


@pytest.mark.parametrize("subject", [["../link", "main.py"], ["main.py"], ["../link", "-m", "main"]])
def test_no_secret_argument_is_in_it(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, subject: list[str]) -> None:
    words = [*subject, "--", "--api-key", "sk-XYZ123", "--token=sk-XYZ456"]  # behind them no option is ours
    machine.variables["VIRTUAL_ENV"] = str(machine.home / "env")
    before = json.loads(machine.run("doctor", "--format", "json", *words, code=None))
    bundle = tmp_path / "world.tar.zst"
    machine.run("capture", "--out", bundle, *words, code=0)
    with unpacked(bundle) as archive:
        assert b"sk-XYZ" not in b"".join(archive.extractfile(entry).read() for entry in archive if entry.isreg())
    machine.home.rename(tmp_path / "gone")
    assert "--api-key" in json.dumps(before) and elsewhere.report(bundle, code=None)["findings"] == before["findings"]


PROGRAM = """import os
mode = os.environ.get("APP_SESSION", "")
os.environ["HF_TOKEN"] = "hush-item"
os.environ.setdefault("WANDB_API_KEY", "hush-default")
API_TOKEN: str = "hush-annotated"
config = {"password": "hush-entry", "name": "plain-name", "nested": {"api_key": f"hush{mode}hush"}}
def login(token="hush-parameter", key="app"):
    return token
login(token="hush-keyword")
TOKEN = (
    "hush-first"
    "hush-second")
secret = '''hush
hush-long'''
token = os.environ["HUB_TOKEN"]
# ghp_hushabcdefghijklmnopqrstuvwxyz012345
"""


def own_files(bundle: Path) -> dict[str, bytes]:
    with unpacked(bundle) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isreg()}


def test_no_literal_of_a_secret_is_in_it(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    source = PROGRAM + 'raise RuntimeError("of " + mode)\n'
    (machine.home / "project" / "own.py").write_text(source)
    machine.variables.update(HUB_TOKEN="hush-hush-hush", APP_SESSION="ghp_hushabcdefghijklmnopqrstuvwxyz012345",
                             TF_CPP_MIN_LOG_LEVEL="hush-level")
    before = machine.run("doctor", "../env", "own.py", "--format", "json", code=None)
    assert "RuntimeError: of ghp_***" in before and "hush" not in before
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "own.py")
    files = own_files(bundle)
    assert not [name for name, data in files.items() if b"hush" in data]
    captured = next(data for name, data in files.items() if name.endswith("own.py")).decode()
    assert [len(line) for line in captured.split("\n")] == [len(line) for line in source.split("\n")]
    for kept in ('os.environ["HF_TOKEN"]', '"name": "plain-name"', '{mode}', 'key="app"', 'os.environ["HUB_TOKEN"]'):
        assert kept in captured
    variables = json.loads(files["manifest.json"])["variables"]
    assert variables["TF_CPP_MIN_LOG_LEVEL"] == "x" * len("hush-level")
    assert variables["LD_LIBRARY_PATH"] == str(machine.home / "elsewhere")
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout == before


def test_of_a_notebook_no_outputs_and_no_secrets(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    lines = ["%env HF_TOKEN=hush-set\n", "%env HF_TOKEN hush-set\n", "!HF_TOKEN=hush python x.py --token hush --other kept\n",
             "password = 'hush-cell'\n", "import absent\n"]
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": lines,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["hush-output\n"]}]}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (machine.home / "project" / "own.ipynb").write_text(json.dumps(notebook, indent=1))
    del machine.variables["HUB_TOKEN"]
    before = machine.run("doctor", "../env", "own.ipynb", "--format", "json", code=None)
    assert "absent" in before
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "own.ipynb")
    files = own_files(bundle)
    assert not [name for name, data in files.items() if b"hush" in data]
    assert b"--other kept" in next(data for name, data in files.items() if name.endswith("own.ipynb"))
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout == before


# What is no secret, though its name has a word of one in it, or what every other text has.
@pytest.mark.parametrize(("name", "value"), [
    ("DB_PASSWORD", "password"), ("DB_PASSWORD", "python"), ("KEY_TYPE", "string"), ("MONKEY", "version"),
    ("SSH_KEY_HOME", "{home}"), ("SECRETS_DIR", "{home}/env"), ("SECRETS_DIR", "{home}/env/lib:{home}/project"),
    ("KEY_ALGORITHM", "sha256"), ("XAUTHORITY", "{home}/elsewhere"), ("AUTH_MODE", "python3.8"), ("GIT_AUTHOR_NAME", "app"),
    ("MAX_TOKENS", "100000"), ("COMPASS", "environment")])
def test_a_variable_that_is_named_like_a_secret_changes_nothing(machine: Machine, elsewhere: Elsewhere, tmp_path: Path,
                                                                name: str, value: str) -> None:
    (machine.home / "project" / "own.py").write_text("import app, string, hashlib\nimport absent_of_python\n")
    machine.variables["PYTHONPATH"] = str(machine.home / "elsewhere")
    plain = machine.run("doctor", "../env", "own.py", "--format", "json", code=None)
    machine.variables[name] = value.format(home=machine.home)
    before = machine.run("doctor", "../env", "own.py", "--format", "json", code=None)
    assert json.loads(before)["findings"] == json.loads(plain)["findings"]
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "own.py")
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout == before


# Where a program puts the value of a secret, the bundle has neither it nor another report.
@pytest.mark.parametrize("program", [
    'import os, importlib\nimportlib.import_module("m_" + os.environ["SERVICE_API_KEY"])\n',
    'import os\nif not os.environ["SERVICE_API_KEY"].startswith("hush"):\n    raise SystemExit("no key")\nimport absent\n',
    'import os\nraise ValueError("bad key " + os.environ["SERVICE_API_KEY"])\n',
    "import sys, importlib\nimportlib.import_module('m_' + sys.argv[2])\n",
    "import of_path\nimport absent\n"])
def test_a_secret_that_is_part_of_a_path(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, program: str) -> None:
    secret = "hush7hush/Hush+hush"
    place = machine.home / "data" / secret / "lib"
    place.mkdir(parents=True)
    (place / "of_path.py").write_text("import missing_behind_it\n")
    (machine.home / "data" / "link").symlink_to(place)
    machine.variables.update(SERVICE_API_KEY=secret, PYTHONPATH=f"{place}:{place}/absent:{machine.home}/data/link")
    (machine.home / "project" / "own.py").write_text(program)
    words = ["../env", "own.py", "--", "--api-key", secret]
    before = machine.run("doctor", "--format", "json", *words, code=None)
    bundle = tmp_path / "world.tar.zst"
    machine.run("capture", "--out", bundle, *words, code=0)
    with unpacked(bundle) as archive:
        entries = archive.getmembers()
        whole = b"".join(archive.extractfile(entry).read() for entry in entries if entry.isreg())
    assert b"hush7" not in whole and not [entry for entry in entries if "hush7" in entry.name + entry.linkname]
    assert "hush7" not in before
    machine.home.rename(tmp_path / "gone")
    after = elsewhere.run("doctor", bundle, "--format", "json", code=None)
    assert after.stdout == before and "hush7" not in after.stderr


TOLD = """import os, subprocess
setattr(os, "token", "hush-set1")
os.system("export API_TOKEN=hush-shell2; app --password hush-option3 --name kept-name")
HEADER = "curl -H 'Authorization: token hush-header4' -u amanda:hush-user5 kept-address"
subprocess.call(["app", "--secret-key", "hush-word6", "-H", "Authorization: Bearer hush-bearer7", "--other", "kept-word"])
TEXT = '{"password": "hush-json8", "name": "kept-json"}'
# token = "hush-comment9", of a comment
'''password=hush-doc10
kept-doc'''
"""


def test_what_texts_and_comments_tell_of_is_not_in_it(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    (machine.home / "project" / "own.py").write_text(TOLD + "import absent\n")
    (machine.home / "project" / "cohabit.toml").write_text('# token = "hush-toml11"\n[severity]\nLD201 = "warning"\n')
    before = machine.run("doctor", "../env", "own.py", "--format", "json", code=None)
    files = own_files(machine.capture(tmp_path / "world.tar.zst", "../env", "own.py"))
    captured = next(data for name, data in files.items() if name.endswith("own.py")).decode()
    assert "hush" not in captured
    assert not [name for name, data in files.items() if b"hush" in data]
    for kept in ("--name kept-name", "kept-address", '"--other", "kept-word"', '"name": "kept-json"', "kept-doc"):
        assert kept in captured
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", tmp_path / "world.tar.zst", "--format", "json", code=None).stdout == before


def test_an_unused_ignore_is_where_it_was_written(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    (machine.home / "project" / "cohabit.toml").write_text('[[ignore]]\ncode = "CB101"\nreason = "not any more"\n')
    for form in ("full", "json", "sarif", "github"):
        bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "app")
        before = machine.run("doctor", "../env", "--imports", "app", "--format", form, code=None)
        assert "IO902" in before and "cohabit-bundle" not in before
        assert elsewhere.run("doctor", bundle, "--format", form, code=None).stdout == before


def test_directories_that_are_not_utf8(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    place = machine.home / os.fsdecode(b"caf\xe9")
    place.mkdir()
    (place / "of_path.py").write_text("import missing_behind_it\n")
    (place / "own.py").write_text("import of_path\n")
    machine.variables["PYTHONPATH"] = str(place)
    before = machine.run("doctor", "../env", "--imports", "of_path", "--format", "json", code=None)
    assert "missing_behind_it" in before
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "of_path")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout == before
    own = run(machine.cohabit, "doctor", "../env", "own.py", "--format", "json", code=None, cwd=place, HOME=str(machine.home)).stdout
    assert "missing_behind_it" in own
    run(machine.cohabit, "capture", "../env", "own.py", "--out", bundle, code=0, cwd=place, HOME=str(machine.home))
    machine.home.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=None).stdout == own


# What is taken out of the user's programs changes no syntax, and what follows from it is the same with it and without.
LITERALS = [
    r'x = "PGPASSWORD=\"Summer2024x\" psql"', r"x='PASSWORD=\'Summer2024x\' x'", r'x="curl -u \"bob:Summer2024x\" https://x"',
    r'x="token:\"\"\"a"', "x=f\"password={'Summer2024x'}\"", "u={'x': 1}; x=f\"password={u['x']}\"", "x=f'token={1:{2}}x'",
    'password="abc\\\ndef12345"', 'password="""Summer\n2024x"""', 'password=r"\\Summer2024x\\d"', r'password="Summer2024x\\"', "x='token=a\\\\'",
    'password="Summer2024x"\nif password=="Summer2024x": import app\nelse: import absent1', 'password="Summer2024x"\nif password.startswith("S"): import absent1',
    'AUTH="LDAP2"\nif AUTH=="LDAP2": import absent1', 'url="https://bob:Summer2024x@host/x"\nif "bob" in url: import absent1',
    'import importlib\nTOKEN="other7"\nimportlib.import_module(TOKEN)', 'import importlib\ndef load(token="other7"): importlib.import_module(token)\nload()',
    'SECRETS={"a": "other7"}\nfor v in SECRETS.values(): __import__(v)', 'password="Summer2024x"\nraise ImportError("bad "+password)',
    'raise ImportError("cannot reach https://bob:Summer2024x@host/ token=Summer2024x")', 'api_key="Summer2024x"\n__import__(api_key)',
    'import os\nos.environ["X_TOKEN"]="Summer2024x"\n__import__(os.environ["X_TOKEN"])', 'x = "the password is Summer2024x"',
    'import os\nenv = os.environ.copy()\nif env.get("APP_SESSION") == "on": import absent1',
    'import os\nenv = {**os.environ}\nif env["APP_SESSION"] == "on": import absent1', 'import os\nif dict(os.environ)["APP_SESSION"] == "on": import absent1',
    'import os\nfor k, v in os.environ.items():\n    if (k, v) == ("APP_SESSION", "on"): import absent1',
    'import os\nif "APP_SESSION" in list(os.environ): import absent1', 'import os\nif "APP_SESSION" in os.environ.keys(): import absent1',
    'import os\nif "{APP_SESSION}".format(**os.environ) == "on": import absent1', 'import os\nif "%(APP_SESSION)s" % os.environ == "on": import absent1',
    'import os\nif [v for k, v in sorted(os.environ.items()) if k == "APP_SESSION"] == ["on"]: import absent1',
    'import os, subprocess\nsubprocess.run(["true"], env=dict(os.environ, X="1"))',
]


@pytest.mark.parametrize("program", LITERALS)
def test_what_is_taken_out_changes_nothing(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, program: str) -> None:
    (machine.home / "project" / "own.py").write_text(program + "\nimport absent2\n")
    (machine.home / "project" / "other7.py").write_text("")
    machine.variables["APP_SESSION"] = "on"
    words = ["../env", "own.py"]
    bundle = machine.capture(tmp_path / "world.tar.zst", *words)
    before = {form: machine.run("doctor", *words, "--format", form, code=None) for form in ("full", "json", "sarif")}
    assert "Summer2024x" not in "".join(before.values()) and "SyntaxError" not in before["full"]
    with unpacked(bundle) as archive:
        entries = archive.getmembers()
        assert b"Summer2024x" not in b"".join(archive.extractfile(entry).read() for entry in entries if entry.isreg())
        assert not [entry for entry in entries if "Summer2024x" in entry.name]
    machine.home.rename(tmp_path / "gone")
    for form, text in before.items():
        assert elsewhere.run("doctor", bundle, "--format", form, code=None).stdout == text


@pytest.mark.parametrize("value", ["ACME42", "Abc 12345", "Abc'12345", 'a"b\\c$d1', "line1Aa\nline2Bb", "Hello World 99", "v1.2.3-rc", "Zx7/Qp2mLw9v"])
def test_the_value_of_a_variable_wherever_it_stands(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, value: str) -> None:
    """Nobody asks for the variable, so that a bundle has not even its name."""
    place = machine.home / "project" / (value.replace("/", "_") + "-dir")
    place.mkdir()
    (place / "own.py").write_text(f"import absent2\nx = {value!r}\ny = {json.dumps(value)}\n")
    machine.variables.update(PROJECT_KEY=value, PYTHONPATH=str(place))
    (machine.home / "project" / "cohabit.toml").write_text(f"[[ignore]]\ncode = \"CB101\"\nreason = {json.dumps('see ' + value)}\n")
    words = ["../env", str(place / "own.py"), "--", value, f"--name={value}", "-u", f"bob:{value}"]
    bundle = tmp_path / "world.tar.zst"
    machine.run("capture", "--out", bundle, *words, code=0)
    before = {form: machine.run("doctor", "--format", form, *words, code=None) for form in ("full", "concise", "json", "sarif", "github")}
    parts = [value] if "/" not in value else []
    assert not [part for part in parts if part in "".join(before.values())]
    with unpacked(bundle) as archive:
        entries = archive.getmembers()
        whole = b"".join(archive.extractfile(entry).read() for entry in entries if entry.isreg())
        assert not [part for part in parts if part.encode() in whole or any(part in entry.name for entry in entries)]
    machine.home.rename(tmp_path / "gone")
    for form, text in before.items():
        assert elsewhere.run("doctor", bundle, "--format", form, code=None).stdout == text


def test_no_credentials_in_a_reason(machine: Machine) -> None:
    (machine.home / "project" / "cohabit.toml").write_text(
        '[[ignore]]\ncode = "PY302"\nreason = "see https://amanda:pass-word@index.example/x"\n')
    for form in ("full", "concise", "json", "sarif", "github"):
        report = machine.run("doctor", "../env", "--imports", "app", "--format", form, code=None)
        assert "pass-word" not in report
    assert "https://***@index.example/x" in machine.run("doctor", "../env", "--imports", "app", "--format", "json", code=None)


def test_of_a_library_the_parts_that_were_read(machine: Machine, tmp_path: Path) -> None:
    with unpacked(machine.capture(tmp_path / "world.tar.zst", "../link", "--imports", "app")) as archive:
        entry = next(entry for entry in archive if entry.name.endswith("app/fast.so"))
        original = (machine.home / SITE / "app" / "fast.so").read_bytes()
        assert entry.issparse() and entry.size == len(original)
        assert archive.extractfile(entry).read(2000) == original[:2000]
        modes = {entry.name.rsplit("/", 1)[1]: entry.mode & 0o111 for entry in archive if entry.isreg() and "/" in entry.name}
        assert modes["python3"] and not modes["os.py"]


def test_other_imports_than_it_was_made_for(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "app")
    machine.home.rename(tmp_path / "gone")
    report = elsewhere.report(bundle, "--imports", "other", code=0)
    assert "the bundle was made for another examination" in report["unknowns"][0]
    assert [order["verdict"] for order in report["orders"]] == ["unknown"]
    assert not [finding for finding in report["findings"] if finding["code"] == "PY302" and finding["severity"] != "note"]
    assert "unknowns" in report and not any("made for another" in one for one in elsewhere.report(bundle)["unknowns"])


LEFT_OUT = f"""program env/bin/python3
file env/lib/python3.11/os.py
file {SITE}/one/__init__.py x = 1
file {SITE}/two/__init__.py x = 1
file {SITE}/two/data.txt hello
lib {SITE}/native.so
  defs PyInit_native
dist {SITE} two 1.0
  lists two/__init__.py
  lists two/data.txt
file mine.py import os
file main.py x = 1
"""


@pytest.fixture
def left_out(cohabit: str, tmp_path: Path) -> Path:
    world = tmp_path / "world"
    casefile.build_world(LEFT_OUT, world)
    metadata = world / SITE / "two-1.0.dist-info"
    (metadata / "INSTALLER").write_text("pip\n")
    rows = [(path, (world / SITE / path).read_bytes()) for path in ("two/__init__.py", "two/data.txt")]
    hashes = [base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") for _, data in rows]
    (metadata / "RECORD").write_text("".join(
        f"{path},sha256={digest},{len(data)}\n" for (path, data), digest in zip(rows, hashes)))
    return world


@pytest.mark.parametrize("asked, lacks", [("two", "two/__init__.py"), ("native", "native.so")])
def test_what_is_left_out_is_not_judged(cohabit: str, elsewhere: Elsewhere, left_out: Path, tmp_path: Path,
                                        asked: str, lacks: str) -> None:
    bundle = tmp_path / "world.tar.zst"
    run(cohabit, "capture", left_out / "env", "--imports", "one", "--out", bundle, code=0, cwd=tmp_path)
    report = elsewhere.report(bundle, "--imports", asked, code=0)
    assert report["findings"] == [] and [order["verdict"] for order in report["orders"]] == ["unknown"]
    lines = [line for line in report["unknowns"] if "bundle" in line or lacks in line]
    assert len(lines) == 1 and lacks in lines[0] and "content of 1 file (" in lines[0]
    assert f"`cohabit capture {left_out}/env --imports {asked} --out NAME.tar.zst`" in lines[0]


def test_what_is_known_to_be_missing_is_said_all_the_same(cohabit: str, elsewhere: Elsewhere, left_out: Path,
                                                          tmp_path: Path) -> None:
    bundle = tmp_path / "world.tar.zst"
    run(cohabit, "capture", left_out / "env", "--imports", "one", "--out", bundle, code=0, cwd=tmp_path)
    report = elsewhere.report(bundle, "--imports", "one.nothere", code=1)
    assert [finding["code"] for finding in report["findings"]] == ["PY302"]


def test_hashes_that_a_bundle_does_not_hold(cohabit: str, elsewhere: Elsewhere, left_out: Path, tmp_path: Path) -> None:
    bundle, verified = tmp_path / "world.tar.zst", tmp_path / "verified.tar.zst"
    (left_out / SITE / "two" / "data.txt").write_text("HELLO")  # as long as it was
    capture = ["capture", left_out / "env", "--imports", "one"]
    run(cohabit, *capture, "--out", bundle, code=0, cwd=tmp_path)
    report = elsewhere.report(bundle, "--verify-hashes", code=0)
    assert report["findings"] == [] and "none is compared" in report["unknowns"][0]
    assert "--verify-hashes" in report["unknowns"][0]
    before = json.loads(run(cohabit, "doctor", left_out / "env", "--imports", "one", "--verify-hashes", "--format", "json",
                            code=None, cwd=tmp_path).stdout)
    assert [finding["code"] for finding in before["findings"]] == ["FI003"]
    run(cohabit, *capture, "--verify-hashes", "--out", verified, code=0, cwd=tmp_path)
    left_out.rename(tmp_path / "gone")
    for words in ([], ["--verify-hashes"]):
        assert elsewhere.report(verified, *words, code=None) == before
    with unpacked(verified) as archive:
        assert b"HELLO" not in b"".join(archive.extractfile(entry).read() for entry in archive if entry.isreg())


def test_names_in_the_home_directory_that_were_not_asked_for(cohabit: str, elsewhere: Elsewhere, left_out: Path,
                                                             tmp_path: Path) -> None:
    """They are not in it, and nobody knows whether they were there."""
    bundle = tmp_path / "world.tar.zst"
    home = {"HOME": str(left_out)}
    (left_out / "main.py").write_text("import nothere")
    run(cohabit, "capture", "env", "main.py", "--out", bundle, code=0, cwd=left_out, **home)
    before = json.loads(run(cohabit, "doctor", "env", "main.py", "--format", "json", code=1, cwd=left_out, **home).stdout)
    assert elsewhere.report(bundle, code=1) == before
    report = elsewhere.report(bundle, "--imports", "mine", code=0)
    assert report["findings"] == [] and "mine" in report["unknowns"][0]


def test_what_a_bundle_cannot_do(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    bundle = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "app")
    for words in (["--root", "/"], ["--trace"]):
        assert "another machine" in elsewhere.run("doctor", bundle, *words, code=2).stderr
    assert "world.tar" in elsewhere.run("capture", "--out", "world.tar", code=2).stderr


def test_strings_that_were_only_searched_are_not_in_it(cohabit: str, elsewhere: Elsewhere, tmp_path: Path) -> None:
    """Names of libraries among the constants are what doctor works out; the constants stay where they are."""
    case = casefile.Case(Path(casefile.__file__).with_name("ld210_fires.case"))
    world, bundle = tmp_path / "world", tmp_path / "world.tar.zst"
    literals = json.dumps(["libpart.so", "constant" * 20_000])
    casefile.build_world(case.sections["world"].replace('["libpart.so"]', literals), world)
    words = [world / "env", "--imports", "one,two", "--assume-gpu"]
    before = run(cohabit, "doctor", *words, "--format", "json", code=0, cwd=tmp_path).stdout
    assert "LD210" in before
    run(cohabit, "capture", *words, "--out", bundle, code=0, cwd=tmp_path)
    with unpacked(bundle) as archive:
        entry = next(entry for entry in archive if entry.name.endswith("libmain.so.9"))
        assert archive.extractfile(entry).read().count(b"constant") < 10_000
    world.rename(tmp_path / "gone")
    assert elsewhere.run("doctor", bundle, "--format", "json", code=0).stdout == before


# --- writing it

@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_no_room(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, action: signal.Handlers) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, action)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    out = tmp_path / "out" / "world.tar.zst"
    out.parent.mkdir()
    done = subprocess.run([machine.cohabit, "capture", machine.home / "env", "--out", out], capture_output=True, text=True,
                          env={**machine.variables, "PATH": os.environ["PATH"]}, preexec_fn=limit, timeout=60)
    assert done.returncode == 2 and "world.tar.zst" in done.stderr and "too large" in done.stderr
    assert list(out.parent.iterdir()) == []
    machine.capture(out, machine.home / "env")
    done = subprocess.run([machine.cohabit, "doctor", out], capture_output=True, text=True,
                          env={**elsewhere.variables, "PATH": os.environ["PATH"]}, preexec_fn=limit, timeout=60)
    assert done.returncode == 2 and "world.tar.zst" in done.stderr and "too large" in done.stderr
    assert list(elsewhere.scratch.iterdir()) == []


def test_killed_it_leaves_a_whole_bundle_or_none(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    out = tmp_path / "world.tar.zst"
    command = [machine.cohabit, "capture", machine.home / "env", "--imports", "app", "--out", out]
    start = time.monotonic()
    machine.run(*command[1:], code=0)
    taken = time.monotonic() - start
    for part in range(1, 21):
        out.unlink(missing_ok=True)
        child = subprocess.Popen(command, env=machine.variables, stderr=subprocess.DEVNULL)
        time.sleep(taken * part / 18)
        child.kill()
        child.wait(20)
        if out.exists():
            assert elsewhere.report(out)["orders"]


def test_two_at_once(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    out = tmp_path / "world.tar.zst"
    command = [machine.cohabit, "capture", machine.home / "env", "--imports", "app", "--out", out]
    children = [subprocess.Popen(command, env=machine.variables, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4
    assert elsewhere.report(out)["orders"] and list(tmp_path.glob("*.partial")) == []


# --- hostile bundles

def frame(*blocks: tuple[int, bytes, int]) -> bytes:
    """A zstd frame (RFC 8878) of raw (0) and repeating (1) blocks: kind, bytes, size."""
    out = b"\x28\xb5\x2f\xfd\x00\x58"
    for i, (kind, data, size) in enumerate(blocks):
        out += ((i == len(blocks) - 1) | kind << 1 | size << 3).to_bytes(3, "little") + data
    return out


def packed(data: bytes) -> bytes:
    parts = [data[at:at + 65536] for at in range(0, len(data), 65536)]
    return frame(*[(0, part, len(part)) for part in parts])


def tar(*entries: tuple[str, bytes, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, text in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            data = text.encode() if kind == tarfile.REGTYPE else b""
            entry.size, entry.linkname = len(data), "" if data else text
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


FILE, LINK, HARD, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE


@pytest.mark.parametrize("entries, why", [
    ([("../outside", FILE, "x")], "outside"),
    ([("tree/a/../../../outside", FILE, "x")], "outside"),
    ([("/tmp/cohabit-outside", FILE, "x")], "outside"),
    ([("tree/x", HARD, "../../outside")], "outside"),
    ([("tree/x", HARD, "/etc/passwd")], "outside"),
    ([("a/" * 300 + "x", FILE, "x")], "outside"),
    ([("tree", LINK, "OUTSIDE"), ("tree/file", FILE, "x")], "tree"),
    ([("tree/x", LINK, "OUTSIDE"), ("tree/x/file", FILE, "x")], "tree/x"),
    ([("tree/null", DEVICE, "")], "neither"),
    ([("manifest.json", LINK, "/etc/passwd")], "neither"),
    ([("tree/pipe", tarfile.FIFOTYPE, ""), ("manifest.json", HARD, "tree/pipe")], "neither"),
    ([("tree/x", FILE, "x"), ("tree/x", FILE, "x")], '"tree/x" is in it twice'),
    ([("tree/x", FILE, "x"), ("tree/x/y", FILE, "x")], 'a part of "tree/x'),
    ([("tree/x", FILE, "x")], "manifest.json"),
    ([("manifest.json", FILE, "[]")], "manifest.json"),
    ([("manifest.json", FILE, "{}")], "schema_version"),
    ([("manifest.json", FILE, '{"schema_version": 99}')], "reads up to 1"),
    ([("manifest.json", FILE, '{"schema_version": 1, "cohabit": "0.1.0", "subject": {"environment": "", "program": null}}')],
     "/subject/program"),
    ([("manifest.json", FILE, '{"schema_version": 1, "cohabit": "0.1.0", "subject": []}')], "/subject/environment"),
    ([("", FILE, "x")], "without a name"),
], ids=range(20))
def test_nothing_gets_out(elsewhere: Elsewhere, tmp_path: Path, entries: list, why: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    bundle = tmp_path / "evil.tar.zst"
    bundle.write_bytes(packed(tar(*[(n, k, t.replace("OUTSIDE", str(outside))) for n, k, t in entries])))
    message = elsewhere.run("doctor", bundle, code=2).stderr
    assert message.startswith("cohabit: ") and "evil.tar.zst" in message and why in message
    assert list(outside.iterdir()) == [] and not (elsewhere.scratch.parent / "outside").exists()


@pytest.mark.parametrize("map_text, size, why", [
    (b"1\n0\n1\n", 1 << 50, "claims"),  # a file of a petabyte
    (b"1\n4096\n1\n", 16, "tar"),  # a part behind the end
    (b"99999999999\n", 16, "tar"),
    (None, 16, "longer"),  # a map of gigabytes, from a small file
], ids=["petabyte", "behind", "count", "map"])
def test_lying_sparse_files(elsewhere: Elsewhere, tmp_path: Path, map_text: bytes | None, size: int, why: str) -> None:
    data = map_text.ljust(512, b"\0") + b"x" if map_text else b""
    entry = tarfile.TarInfo("GNUSparseFile.0/x")
    entry.size = len(data) if map_text else 8 << 30
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "tree/x",
                         "GNU.sparse.realsize": str(size)}
    bytes_ = entry.tobuf(tarfile.PAX_FORMAT) + data.ljust((len(data) + 511) // 512 * 512, b"\0") + bytes(1024)
    bundle = tmp_path / "evil.tar.zst"
    if map_text:
        bundle.write_bytes(packed(bytes_))
    else:  # "11111...": one number that does not end; then blocks of newlines would be next
        head = b"9999999\n" + b"0\n" * 30_000
        blocks = [(0, bytes_[:-1024], len(bytes_) - 1024)] + [(0, head, len(head))] * 200
        bundle.write_bytes(frame(*blocks))
    message = elsewhere.run("doctor", bundle, code=2).stderr
    assert why in message and "evil.tar.zst" in message


def test_a_bomb(elsewhere: Elsewhere, tmp_path: Path) -> None:
    """40 kB that would be 1.2 GB on the disk."""
    entry = tarfile.TarInfo("tree/x")
    entry.size = 10_000 * (128 << 10)
    header = entry.tobuf(tarfile.PAX_FORMAT)
    bundle = tmp_path / "bomb.tar.zst"
    bundle.write_bytes(frame((0, header, len(header)), *[(1, b"\1", 128 << 10)] * 10_000))
    assert bundle.stat().st_size < 50_000
    assert "more data" in elsewhere.run("doctor", bundle, code=2).stderr


def test_no_archive_and_half_of_one(machine: Machine, elsewhere: Elsewhere, tmp_path: Path) -> None:
    whole = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "app").read_bytes()
    bundle = tmp_path / "evil.tar.zst"
    for data in (b"", b"no archive at all", packed(b"no tar" * 200), whole[:20], whole[:len(whole) // 2],
                 whole[:-5], whole[:5000] + bytes(100) + whole[5100:]):
        bundle.write_bytes(data)
        message = elsewhere.run("doctor", bundle, code=2).stderr
        assert message.startswith("cohabit: ") and "evil.tar.zst" in message
    assert "evil" in elsewhere.run("doctor", tmp_path / "not-there" / "evil.tar.zst", code=2).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGXCPU])
def test_a_signal_leaves_nothing(machine: Machine, elsewhere: Elsewhere, tmp_path: Path, number: int) -> None:
    whole = machine.capture(tmp_path / "world.tar.zst", "../env", "--imports", "app").read_bytes()
    pipe = tmp_path / "pipe.tar.zst"
    os.mkfifo(pipe)
    child = subprocess.Popen([machine.cohabit, "doctor", pipe], env=elsewhere.variables,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    with pipe.open("wb") as stream:
        stream.write(whole[:-100])
        stream.flush()
        end = time.monotonic() + 20
        while not list(elsewhere.scratch.glob("*/manifest.json")) and time.monotonic() < end:
            time.sleep(0.01)
        child.send_signal(number)
        assert child.wait(20) == -number
    assert list(elsewhere.scratch.iterdir()) == []
