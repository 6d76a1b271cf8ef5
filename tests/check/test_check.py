"""What an install would do, said before it is done: with pip and uv, against indexes of generated wheels."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path

import index as made
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "images"))
import elfimage  # noqa: E402


def kinds(report: dict) -> dict[str, tuple]:
    return {one["name"].lower(): (one["kind"], one["from"], one["to"]) for one in report["changes"]}


def walk(root: Path) -> dict[str, tuple]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns, path.lstat().st_nlink)
            for path in root.rglob("*") if "__pycache__" not in path.parts}


def test_changes_and_their_reasons(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    old = [made.make_wheel(wheels, "numlib", "2.1.0"), made.make_wheel(wheels, "grower", "1.0")]
    environment.install(*old)
    made.make_wheel(wheels, "numlib", "1.26.4")
    made.make_wheel(wheels, "grower", "1.5")
    made.make_wheel(wheels, "jit", "0.59", requires=("numlib<2", "grower>=1.2", "extras-of[fast]"))
    made.make_wheel(wheels, "extras-of", "3", requires=("speedup ; extra == 'fast'",))
    made.make_wheel(wheels, "speedup", "4")
    before = walk(environment.root)
    report = ask(environment, "jit", "--no-index", "--find-links", wheels)
    assert kinds(report) == {"numlib": ("downgraded", "2.1.0", "1.26.4"), "grower": ("upgraded", "1.0", "1.5"),
                             "jit": ("added", None, "0.59"), "extras-of": ("added", None, "3"),
                             "speedup": ("added", None, "4")}
    because = {one["name"].lower(): one["because"] for one in report["changes"]}
    assert because["jit"] == ["jit"] and because["numlib"] == ["jit", "numlib<2"]
    assert because["speedup"] == ["jit", "extras-of[fast]", "speedup"]
    assert report["installer"] == environment.installer and report["bytes_fetched"] == 0
    assert report["bytes_of_wheels"] == sum(
        (wheels / name).stat().st_size for name in ("jit-0.59-py3-none-any.whl", "numlib-1.26.4-py3-none-any.whl",
                                                    "grower-1.5-py3-none-any.whl", "extras_of-3-py3-none-any.whl",
                                                    "speedup-4-py3-none-any.whl"))
    assert walk(environment.root) == before, "checking changes nothing"


def test_a_module_that_the_new_version_has_no_more(environment, ask, tmp_path: Path):
    """setuptools 81 and later have no pkg_resources."""
    wheels = tmp_path / "wheels"
    users = {"strict": b"from old_one import x\n", "careful": b"try:\n    import old_one\nexcept ImportError:\n    old_one = None\n"}
    environment.install(made.make_wheel(wheels, "one", "1", files={"one/__init__.py": b"", "old_one.py": b"x = 1\n", "_old.py": b""}),
                        *(made.make_wheel(wheels, name, "1", files={f"{name}/__init__.py": text + b"import _old\n"})
                          for name, text in users.items()))
    made.make_wheel(wheels, "one", "2", files={"one/__init__.py": b""})
    report = ask(environment, "one==2", "--no-index", "--find-links", wheels)
    assert [(one["code"], one["severity"]) for one in report["findings"]] == [("PY302", "warning")]
    headline = report["findings"][0]["headline"]
    assert headline.startswith("one 2 has no module old_one any more, and ") and "strict/__init__.py imports it" in headline


def test_nothing_to_do(environment, check, tmp_path: Path):
    environment.install(made.make_wheel(tmp_path / "wheels", "one", "1"))
    done = check(environment, "one", "--no-index", "--find-links", tmp_path / "wheels")
    assert "would change nothing" in done.stdout


def test_what_is_installed_and_fits_stays(environment, ask, tmp_path: Path):
    """Both installers keep it; uv only where it may build, in principle."""
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "numlib", "1.26"), made.make_wheel(wheels, "moving", "1"))
    made.make_wheel(wheels, "numlib", "2.0")
    made.make_wheel(wheels, "moving", "2")
    made.make_wheel(wheels, "top", "1", requires=("numlib>=1", "moving>=2"))
    report = ask(environment, "top", "--no-index", "--find-links", wheels)
    assert kinds(report) == {"top": ("added", None, "1"), "moving": ("upgraded", "1", "2")}
    assert report["unknowns"] == []


def test_a_broken_requirement_two_levels_down(environment, ask, tmp_path: Path):
    """jit refuses the new numlib in its own __init__.py: an error; analysis only requires another: a warning."""
    wheels = tmp_path / "wheels"
    refusal = b"import numlib\nif numlib.v > 1:\n    raise ImportError('jit needs numlib 1.26 or less')\n"
    environment.install(made.make_wheel(wheels, "numlib", "1.26"),
                        made.make_wheel(wheels, "jit", "1", {"jit/__init__.py": refusal}, ("numlib<1.27",)),
                        made.make_wheel(wheels, "analysis", "1", requires=("numlib<2", "absent-before")))
    made.make_wheel(wheels, "numlib", "2.0")
    made.make_wheel(wheels, "middle", "1", requires=("numlib>=2",))
    made.make_wheel(wheels, "top", "1", requires=("middle",))
    report = ask(environment, "top", "--no-index", "--find-links", wheels, code=1)
    assert kinds(report)["numlib"] == ("upgraded", "1.26", "2.0")
    assert {one["name"]: one["because"] for one in report["changes"]}["numlib"] == ["top", "middle", "numlib>=2"]
    [finding] = report["findings"]
    assert finding["code"] == "PY001" and finding["severity"] == "error"
    assert "jit 1 refuses numlib 2.0" in finding["headline"]
    assert not [one for one in report["findings"] if "absent-before" in one["headline"]], "that is so today already"
    paths = [one["path"] for one in finding["libraries"]]
    assert all(path.startswith(str(environment.root)) for path in paths), paths


def test_a_new_package_refuses_what_is_there(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "numlib", "2.0"))
    refusal = b"if 1:\n    raise ImportError('jit needs numlib 1.26 or less')\n"
    made.make_wheel(wheels, "jit", "1", {"jit/__init__.py": refusal}, ("numlib<1.27",))
    report = ask(environment, "jit", "--no-deps", "--no-index", "--find-links", wheels, code=1)
    assert [one["headline"] for one in report["findings"]] == ["jit 1 refuses numlib 2.0: it requires <1.27"]


def test_only_what_is_newly_missing(environment, ask, tmp_path: Path):
    """A requirement that is not met today is nobody's fault who installs something else."""
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "broken", "1", requires=("absent", "other>2")),
                        made.make_wheel(wheels, "other", "1"))
    made.make_wheel(wheels, "fresh", "1", requires=("absent", "missing"))
    made.make_wheel(wheels, "other", "2")
    report = ask(environment, "fresh", "other==2", "--no-deps", "--no-index", "--find-links", wheels)
    assert [one["headline"] for one in report["findings"]] == [
        "required and not installed: absent (by fresh), missing (by fresh)"]


def libraries(seed: int, size: int = 100) -> dict[str, bytes]:
    return {"vendor/lib/libdnn.so.9": made.noise(size, seed), "vendor/lib/libdnn_ops.so.9": made.noise(size, seed + 1),
            "vendor/same.txt": b"same"}


def test_overwritten_files_of_what_is_there(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "vendor-cu13", "9.26", libraries(1)))
    made.make_wheel(wheels, "vendor-cu12", "9.28", libraries(10))
    report = ask(environment, "vendor-cu12", "--no-index", "--find-links", wheels, code=1)
    [pair] = report["overwrites"]
    assert (pair["count"], pair["different"], pair["winner"]) == (3, 2, "vendor-cu12")
    assert {pair["first"], pair["second"]} == {"vendor-cu12 9.28", "vendor-cu13 9.26"}
    [finding] = [one for one in report["findings"] if one["code"] == "FI001"]
    assert finding["headline"] == "vendor-cu12 9.28 would overwrite 2 files of vendor-cu13 9.26"
    assert finding["severity"] == "error"


def test_two_that_come_together(environment, ask, tmp_path: Path):
    """pip installs one after the other, and what it does then is what was said; uv's order is nobody's to know."""
    wheels = tmp_path / "wheels"
    first = made.make_wheel(wheels, "vendor-a", "1", libraries(1), python=">=3.8")
    second = made.make_wheel(wheels, "vendor-b", "2", libraries(10))
    made.make_wheel(wheels, "leaf", "1")
    report = ask(environment, "vendor-a", "vendor-b", "--no-index", "--find-links", wheels, code=1)
    [pair] = report["overwrites"]
    assert (pair["count"], pair["different"]) == (3, 2) and report["claimed_twice"] == {"count": 3, "different": 2}
    if environment.installer == "uv":
        assert pair["winner"] == "undecided"
        return
    environment.install(first, second)
    content = (environment.site / "vendor/lib/libdnn.so.9").read_bytes()
    on_disk = "vendor-a" if content == libraries(1)["vendor/lib/libdnn.so.9"] else "vendor-b"
    assert pair["winner"] == on_disk


def entry_points(**calls: str) -> bytes:
    return "".join(["[console_scripts]\n", *(f"{name} = {call}\n" for name, call in calls.items())]).encode()


def test_scripts_that_installers_make(environment, ask, tmp_path: Path):
    """They are in no wheel: what they call tells whether one is written over by another."""
    wheels = tmp_path / "wheels"
    environment.install(
        made.make_wheel(wheels, "tool", "1", {"tool.py": b"", "tool-1.dist-info/entry_points.txt": entry_points(
            tool="tool:main", same="common:main")}))
    made.make_wheel(wheels, "tool-next", "2", {"tool_next.py": b"", "tool_next-2.dist-info/entry_points.txt": entry_points(
        tool="tool_next.cli:main [colour]", same="common : main", own="x:y")})
    report = ask(environment, "tool-next", "--no-index", "--find-links", wheels, code=1)
    [pair] = report["overwrites"]
    assert (pair["count"], pair["different"], pair["winner"]) == (2, 1, "tool-next")
    assert pair["examples"] == ["../../../bin/tool"]
    assert [(one["code"], one["headline"]) for one in report["findings"]] == [
        ("FI001", "tool-next 2 would overwrite 1 file of tool 1")]


def test_files_that_go_with_an_old_version(environment, ask, tmp_path: Path):
    """Installers remove what the old RECORD names, and what stays has a hole."""
    wheels = tmp_path / "wheels"
    shared = {"shared/core.py": b"1", "shared/__init__.py": b"from .core import *\n", "names/__init__.py": b""}
    environment.install(made.make_wheel(wheels, "stays", "1", {**shared, "stays.py": b""}),
                        made.make_wheel(wheels, "goes", "1", {**shared, "goes.py": b""}))
    made.make_wheel(wheels, "goes", "2", {"goes.py": b"2", "names/__init__.py": b""})
    report = ask(environment, "goes==2", "--no-index", "--find-links", wheels, code=1)
    [finding] = [one for one in report["findings"] if one["code"] == "FI002"]
    assert finding["headline"] == "2 files of stays 1 would go with goes 1" and finding["severity"] == "error"
    environment.install(wheels / "goes-2-py3-none-any.whl")
    assert not (environment.site / "shared/core.py").exists(), "and so it is"
    made.make_wheel(wheels, "goes", "3", {**shared, "goes.py": b"3"})
    report = ask(environment, "goes==3", "--no-index", "--find-links", wheels, code=None)
    assert not [one for one in report["findings"] if one["code"] == "FI002"]


@pytest.mark.parametrize("requires", [
    {"a": (), "b": (), "c": ()},
    {"a": ("b",), "b": (), "c": ("a",)},
    {"a": (), "b": ("c",), "c": ()},
    {"a": ("c[x]",), "b": (), "c": ("b ; extra == 'x'",)},
])
@pytest.mark.parametrize("pythons", [{}, {"a": ">=3.8"}, {"b": ">=3.8", "c": ">=3.8"}])
def test_the_last_that_pip_installs(ask, tmp_path: Path, requires, pythons):
    """All three bring one file; whose it is after a real install is whose it was said to be."""
    environment = made.Environment(tmp_path / "env", "pip")
    wheels = tmp_path / "wheels"
    for i, (name, wanted) in enumerate(requires.items()):
        made.make_wheel(wheels, f"pkg-{name}", "1", {"shared/data.so.1": made.noise(64, i)},
                        tuple(f"pkg-{one}" for one in wanted), pythons.get(name, ""))
    where = ["--no-index", "--find-links", str(wheels)]
    report = ask(environment, "pkg-a", "pkg-b", "pkg-c", *where, code=None)
    said = {one["winner"] for one in report["overwrites"]}
    subprocess.run([environment.root / "bin/python", "-m", "pip", "install", *where, "pkg-a", "pkg-b", "pkg-c"],
                   check=True, env=environment.variables, capture_output=True)
    content = (environment.site / "shared/data.so.1").read_bytes()
    last = next(f"pkg-{name}" for i, name in enumerate(requires) if content == made.noise(64, i))
    assert said == {last}


@pytest.mark.parametrize("verb", ["uninstall", "sync"])
def test_guard_foresees_what_goes(environment, cohabit: str, tmp_path: Path, verb: str):
    """What is removed by name, or because a list does not name it."""
    if verb == "sync" and environment.installer == "pip":
        pytest.skip("pip has no sync")
    wheels = tmp_path / "wheels"
    shared = {"shared/core.py": b"1", "shared/__init__.py": b"from .core import *\n"}
    environment.install(made.make_wheel(wheels, "stays", "1", shared), made.make_wheel(wheels, "goes", "1", shared))
    (tmp_path / "wanted.txt").write_text("stays==1\n")
    words = {"pip": ["-y", "goes"], "uv": ["goes"]}[environment.installer]
    if verb == "sync":
        words = [tmp_path / "wanted.txt", "--no-index", "--find-links", wheels]
    pip = {"pip": [environment.root / "bin/python", "-m", "pip", verb],
           "uv": ["uv", "pip", verb, "--python", environment.root / "bin/python"]}[environment.installer]
    done = subprocess.run([cohabit, "guard", "--", *pip, *words], capture_output=True, text=True, env=environment.variables)
    assert done.returncode == 1 and "2 files of stays 1 would go with goes 1" in done.stderr, done.stderr
    assert "nothing was installed" in done.stderr and (environment.site / "goes-1.dist-info").exists()


# ---- what it costs

def big_wheels(directory: Path) -> int:
    """Two wheels of CUDA libraries, which share paths; the sum of their sizes."""
    more = [{f"big_{k}/part{i}.bin": made.noise(8 << 20, k + i) for i in range(3)}
            | {f"big_{k}/file{i}.py": b"" for i in range(400)} for k in (1, 2)]
    paths = [made.make_wheel(directory, "vendor-cu12", "9.28", {**more[0], **libraries(1)}, stored=True),
             made.make_wheel(directory, "vendor-cu13", "9.26", {**more[1], **libraries(10)}, stored=True)]
    return sum(path.stat().st_size for path in paths)


def test_three_thousandths_are_fetched(environment, ask, serve, tmp_path: Path):
    size = big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels")
    report = ask(environment, "vendor-cu12", "vendor-cu13", "--index-url", index.address(), code=1)
    assert report["bytes_of_wheels"] == size
    assert report["bytes_fetched"] == index.sent["cohabit"] <= 0.003 * size
    assert report["claimed_twice"] == {"count": 3, "different": 2}
    assert not report["unknowns"]


def arranged(wheel: Path, how: str) -> None:
    """The same members as another tool packs them: auditwheel makes an entry for each directory, too."""
    with zipfile.ZipFile(wheel) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    info = [name for name in members if ".dist-info/" in name]
    others = [name for name in members if name not in info]
    names = {"at its beginning": info + others, "before its end": others[:-60] + info + others[-60:],
             "in its middle": others[:1500] + info + others[1500:], "at its end": others + info}[how]
    directories = set()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            for end in (at for at, letter in enumerate(name, 1) if letter == "/" and how != "at its end"):
                if name[:end] not in directories:
                    archive.writestr(name[:end], b"")
                directories.add(name[:end])
            archive.writestr(name, members[name])


def long_list(first: int) -> dict[str, bytes]:
    return {f"include/a_directory/with_a_rather_long_name/header_number_{i}.h": made.noise(2000, first + i)
            for i in range(3000)}


def record_size(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return next(one.compress_size for one in archive.infolist() if one.filename.endswith(".dist-info/RECORD"))


@pytest.mark.parametrize("how", ["at its beginning", "before its end", "in its middle", "at its end"])
def test_record_is_read_in_place_of_the_list_of_files(environment, ask, serve, tmp_path: Path, how: str):
    """The list is not packed, and three times as large."""
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "there", "1", {**libraries(1), "include/one.h": b"1"}))
    wheel = made.make_wheel(wheels, "headers", "1", {**long_list(0), **libraries(10)})
    arranged(wheel, how)
    index = serve(wheels)
    report = ask(environment, "headers", "--index-url", index.address(), code=1)
    assert report["claimed_twice"] == {"count": 3, "different": 2} and not report["unknowns"]
    assert report["bytes_fetched"] == index.sent["cohabit"]
    if how != "in its middle":
        assert report["bytes_fetched"] < record_size(wheel) + (22 << 10) < 0.6 * 3000 * (46 + 60)


@pytest.mark.parametrize("how", ["one more", "one less", "another name", "a longer name", "twice"])
def test_a_record_that_does_not_list_what_is_there(ask, serve, tmp_path: Path, how: str):
    """Then the archive's own list counts, as it does to installers."""
    environment = made.Environment(tmp_path / "env", "uv")
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "there", "1", {"taken/file.py": b"there"}))
    wheel = made.make_wheel(wheels, "headers", "1", {**long_list(0), "taken/fil.py": b"1"})
    with zipfile.ZipFile(wheel) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    names = list(members)
    if how == "one more":
        names.insert(5, "taken/file.py")
    elif how == "one less":
        names.remove("taken/fil.py")
        names.insert(5, "taken/file.py")
    elif how in ("another name", "a longer name"):
        names[names.index("taken/fil.py")] = "taken/file.py"
        if how == "another name":  # of the same length in all: another one is shorter by a letter
            names[1] = names[1][:-1]
    else:
        names[7] = names[6]
        names.append("taken/file.py")
    with warnings.catch_warnings(), zipfile.ZipFile(wheel, "w") as archive:
        warnings.simplefilter("ignore")
        for name in names:
            archive.writestr(name, members.get(name, b"another file"))
    report = ask(environment, "headers", "--index-url", serve(wheels).address(), code=None)
    if how == "another name":
        assert report["overwrites"] == [], "nothing that the archive's end says tells it: RECORD is believed"
        return
    assert [(one["count"], one["winner"]) for one in report["overwrites"]] == [(1, "headers")]
    assert any("not in its RECORD" in text for text in report["unknowns"])


def test_a_server_without_ranges(environment, ask, serve, tmp_path: Path):
    size = big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels", ranges=False)
    report = ask(environment, "vendor-cu12", "vendor-cu13", "--index-url", index.address(), code=1)
    assert report["claimed_twice"] == {"count": 3, "different": 2}
    assert report["bytes_fetched"] == index.sent["cohabit"] == size
    assert len([text for text in report["unknowns"] if "gives no ranges" in text]) == 2


@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_offline_is_offline(ask, serve, tmp_path: Path, way: str):
    """uv resolves from its cache; the wheel itself is on the server, which hears nothing."""
    environment = made.Environment(tmp_path / "env", "uv")
    big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels")
    where = ["vendor-cu12", "vendor-cu13", "--index-url", index.address()]
    assert ask(environment, *where, code=1)["claimed_twice"]["count"] == 3
    before = dict(index.sent), list(index.requests)
    if way == "file":
        (tmp_path / "uv.toml").write_text("offline = true\n")
    variables = {"variable": {"UV_OFFLINE": "1"}, "file": {"UV_CONFIG_FILE": str(tmp_path / "uv.toml")}}.get(way, {})
    report = ask(environment, *where, *(["--offline"] if way == "option" else []), variables=variables)
    assert (index.sent, index.requests) == before
    by = {"option": "--offline", "variable": "UV_OFFLINE", "file": "offline in uv's settings"}[way]
    assert len([text for text in report["unknowns"] if f"on a server, and {by} forbids" in text]) == 2
    assert [one["name"] for one in report["changes"]] == ["vendor-cu12", "vendor-cu13"]


@pytest.mark.parametrize("way", ["option", "variable", "file", "netrc"])
def test_a_private_index(environment, check, serve, tmp_path: Path, way: str):
    big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels", login="user:s3cret-word")
    login = "user:s3cret-word"
    arguments, variables = [], {}
    if way == "option":
        arguments = ["--index-url", index.address(login)]
    elif way == "variable":
        variables = {"PIP_INDEX_URL": index.address(login), "UV_DEFAULT_INDEX": index.address(login)}
    elif way == "file":
        (tmp_path / "pip.conf").write_text(f"[global]\nindex_url={index.address(login)}\n")
        folder = Path(environment.variables["HOME"]) / ".config/uv"
        folder.mkdir(parents=True)
        (folder / "uv.toml").write_text(f'[[index]]\nurl = "{index.address(login)}"\ndefault = true\n')
        variables = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "UV_NO_CONFIG": "0"}
    else:
        netrc = Path(environment.variables["HOME"]) / ".netrc"
        netrc.write_text("machine 127.0.0.1 login user password s3cret-word\n")
        netrc.chmod(0o600)
        arguments = ["--index-url", index.address()]
    done = check(environment, "vendor-cu12", "vendor-cu13", *arguments, variables=variables, code=1)
    assert "3 paths claimed twice, 2 of them" in done.stdout
    assert "s3cret-word" not in done.stdout + done.stderr


@pytest.mark.parametrize("spelling", ["-r", "together", "with a sign"])
def test_an_index_in_a_requirements_file(environment, check, serve, tmp_path: Path, spelling: str):
    """Only the file says where the wheels are, and a variable how to get them."""
    big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels", login="user:s3cret-word")
    file = tmp_path / "all.txt"
    file.write_bytes(b"\xef\xbb\xbf--index-url " + index.address("user:${TOKEN}").encode()
                     + b"\r\nvendor-cu12\t# tab\r\nvendor-cu13\r\n")
    words = {"-r": ["-r", file], "together": [f"-r{file}"], "with a sign": [f"--requirement={file}"]}[spelling]
    done = check(environment, *words, variables={"TOKEN": "s3cret-word"}, code=1)
    assert "3 paths claimed twice, 2 of them" in done.stdout and "unknown" not in done.stdout
    assert "s3cret-word" not in done.stdout + done.stderr


@pytest.mark.parametrize("how", ["cut", "busy"])
def test_a_server_that_fails_now_and_then(environment, ask, serve, tmp_path: Path, how: str):
    big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels", fails=how)
    report = ask(environment, "vendor-cu12", "vendor-cu13", "--index-url", index.address(), code=1)
    assert report["claimed_twice"] == {"count": 3, "different": 2} and report["unknowns"] == []


def test_a_private_index_that_refuses(environment, check, serve, tmp_path: Path):
    big_wheels(tmp_path / "wheels")
    index = serve(tmp_path / "wheels", login="user:right")
    done = check(environment, "vendor-cu12", "--index-url", index.address("user:wr0ng-word"), code=2)
    assert "wr0ng-word" not in done.stdout + done.stderr


@pytest.mark.parametrize("way", ["http_proxy", "pip's variable", "a file"])
def test_a_proxy(environment, ask, serve, tmp_path: Path, way: str):
    """The index has a name that nothing resolves: only the proxy leads to it."""
    if way == "pip's variable" and environment.installer == "uv":
        way = "http_proxy"
    big_wheels(tmp_path / "wheels")
    proxy = serve(tmp_path / "wheels")
    address = f"http://127.0.0.1:{proxy.server.server_port}"
    variables = {"http_proxy": address}
    if way == "pip's variable":
        variables = {"PIP_PROXY": address}
    elif way == "a file" and environment.installer == "uv":
        (tmp_path / "uv.toml").write_text(f'http-proxy = "{address}"\n')
        variables = {"UV_CONFIG_FILE": str(tmp_path / "uv.toml")}
    elif way == "a file":
        (tmp_path / "pip.conf").write_text(f"[global]\nproxy = {address}\n")
        variables = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    report = ask(environment, "vendor-cu12", "vendor-cu13", "--index-url", "http://index.invalid/simple/",
                 variables={**variables, "PIP_TRUSTED_HOST": "index.invalid"}, code=1)
    assert report["claimed_twice"] == {"count": 3, "different": 2} and proxy.sent["cohabit"] > 0
    assert all(" http://index.invalid/" in request for request in proxy.requests)


# ---- what cannot be installed

def test_only_a_source_distribution(environment, check, serve, tmp_path: Path):
    (tmp_path / "wheels").mkdir()
    made.make_sdist(tmp_path / "wheels", "onlysource", "1.0")
    done = check(environment, "onlysource", "--index-url", serve(tmp_path / "wheels").address(), code=2)
    assert "--allow-build" in done.stderr and "onlysource" in done.stderr
    assert "built" not in done.stderr, "setup.py was not run"


def test_one_without_a_wheel_hides_no_other(ask, check, tmp_path: Path):
    """uv knows its metadata from a wheel for another Python: it is named, and the others are read and judged."""
    environment = made.Environment(tmp_path / "env", "uv")
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "PyTokens", "1", {"tokens.py": b"1"}))
    made.make_wheel(wheels, "tokens", "2", {"tokens.py": b"2"})
    made.make_wheel(wheels, "needy", "1", requires=("tokens>=2", "tables>=1.5", "pytokens>=2"))
    made.make_wheel(wheels, "tables", "1.5.3", requires=("numlib",), tag="cp27-cp27mu-linux_x86_64")
    made.make_sdist(wheels, "tables", "1.5.3")
    made.make_wheel(wheels, "numlib", "1")
    places = ("--no-index", "--find-links", wheels)
    report = ask(environment, "tokens", "tables==1.5.3", *places, code=1)
    assert [one["headline"] for one in report["findings"]] == ["tokens 2 would overwrite 1 file of PyTokens 1"]
    assert {one["name"]: one["because"] for one in report["changes"]}["tokens"] == ["tokens"]
    [unknown] = report["unknowns"]
    assert unknown.startswith("tables 1.5.3 cannot be read") and "no wheel of it for this Python" in unknown
    done = check(environment, "tables==1.5.3", "--no-deps", *places, code=2)
    assert "there is no wheel of tables 1.5.3" in done.stderr and "--allow-build" in done.stderr


def test_a_finding_about_what_cannot_be_read(ask, tmp_path: Path):
    """Its place is named as it would be, not as it was laid out to be judged."""
    environment = made.Environment(tmp_path / "env", "uv")
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "stays", "1", requires=("tables<2",)),
                        made.make_wheel(wheels, "tables", "1"))
    made.make_wheel(wheels, "other", "1")
    made.make_wheel(wheels, "tables", "2", tag="cp27-cp27mu-linux_x86_64")
    made.make_sdist(wheels, "tables", "2")
    report = ask(environment, "tables==2", "other", "--no-index", "--find-links", wheels, code=None)
    assert any(one["code"] == "PY001" for one in report["findings"]), report
    assert "arrival-" not in str(report) and "tables-2.dist-info" in str(report["findings"])


HOSTILE = """import pathlib
pathlib.Path("@").touch()

def prepare_metadata_for_build_wheel(directory, _settings=None):
    info = pathlib.Path(directory) / "local-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: local\\nVersion: 1\\n")
    return info.name

get_requires_for_build_wheel = lambda _settings=None: []
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
get_requires_for_build_editable = get_requires_for_build_wheel
build_editable = build_wheel = None
"""


@pytest.mark.parametrize("how", ["directory", "address", "editable", "archive"])
def test_code_of_a_place_is_run_only_when_asked_for(environment, check, ask, tmp_path: Path, how: str):
    """--only-binary does not keep pip from running the build of what is named by its place."""
    project = tmp_path / "local"
    project.mkdir()
    (project / "build_local.py").write_text(HOSTILE.replace("@", str(tmp_path / "ran")))
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "build_local"\nbackend-path = ["."]\n')
    ran = tmp_path / "ran"
    words = [str(project)]
    if how == "address":
        words = [f"local @ file://{project}"]
    elif how == "editable":
        words = ["-e", str(project)]
    elif how == "archive":
        shutil.make_archive(str(tmp_path / "local-1"), "gztar", tmp_path, "local")
        words = [str(tmp_path / "local-1.tar.gz")]
    done = check(environment, *words, code=2)
    assert "--allow-build" in done.stderr and not ran.exists()
    report = ask(environment, *words, "--allow-build")
    version = "1" if environment.installer == "pip" else None  # uv builds it and does not tell
    assert kinds(report) == {"local": ("added", None, version)} and ran.exists()


def test_no_such_distribution(environment, check, serve, tmp_path: Path):
    (tmp_path / "wheels").mkdir()
    done = check(environment, "nosuch", "--index-url", serve(tmp_path / "wheels").address(), code=2)
    assert "nosuch" in done.stderr


def test_files_of_requirements_and_constraints(environment, ask, tmp_path: Path):
    wheels = tmp_path / "wheels"
    for version in ("1", "2"):
        made.make_wheel(wheels, "one", version)
    made.make_wheel(wheels, "two", "1", requires=("one",))
    (tmp_path / "requirements.txt").write_text("# what we need\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("two  # and what it needs\n")
    (tmp_path / "constraints.txt").write_text("one<2\n")
    report = ask(environment, "-r", tmp_path / "requirements.txt", "-c", tmp_path / "constraints.txt",
                 "--no-index", "--find-links", wheels)
    assert kinds(report) == {"one": ("added", None, "1"), "two": ("added", None, "1")}
    assert {one["name"]: one["because"] for one in report["changes"]} == {"two": ["two"], "one": ["two", "one"]}


# ---- strangers' wheels

def damaged(data: bytes, how: str) -> bytes:
    end = data.rindex(b"PK\5\6")
    start = int.from_bytes(data[end + 16:end + 20], "little")
    if how == "cut":
        return data[:len(data) // 2]
    if how == "directory behind the end":
        return data[:end + 16] + b"\xf0\xff\xff\x7f" + data[end + 20:]
    if how == "more entries than there are":
        return data[:end + 10] + b"\xf0\xff" + data[end + 12:]
    if how == "member behind the end":
        return data[:start + 42] + b"\xf0\xff\xff\x7f" + data[start + 46:]
    if how == "all members behind the end":
        at = start
        while data[at:at + 4] == b"PK\1\2":
            data = data[:at + 42] + b"\xf0\xff\xff\x7f" + data[at + 46:]
            at += 46 + sum(int.from_bytes(data[at + k:at + k + 2], "little") for k in (28, 30, 32))
        return data
    if how == "no zip":
        return b"<html>not found</html>" * 100
    return b""


@pytest.mark.parametrize("how", ["cut", "directory behind the end", "more entries than there are",
                                 "all members behind the end", "no zip", "empty"])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_damaged_wheel(ask, serve, tmp_path: Path, how: str, ranges: bool):
    """The index has its metadata, so the installer resolves; what it would overwrite is unknown, and said to be."""
    environment = made.Environment(tmp_path / "env", "uv")
    wheel = made.make_wheel(tmp_path / "wheels", "one", "1", requires=("two",))
    made.make_wheel(tmp_path / "wheels", "two", "1")
    wheel.write_bytes(damaged(wheel.read_bytes(), how))
    report = ask(environment, "one", "--index-url", serve(tmp_path / "wheels", ranges=ranges).address())
    assert kinds(report) == {"one": ("added", None, "1"), "two": ("added", None, "1")}
    assert any("one-1-py3-none-any.whl" in text for text in report["unknowns"]), report["unknowns"]


def test_a_bomb_and_odd_names(ask, serve, tmp_path: Path):
    environment = made.Environment(tmp_path / "env", "uv")
    wheels = tmp_path / "wheels"
    made.make_wheel(wheels, "bomb", "1", {"bomb-1.dist-info/RECORD ": b"", "bomb/__init__.py": b"ImportError" * (50 << 20)})
    made.make_wheel(wheels, "odd", "1", {"../../outside.py": b"x", "od\nd/a,b \"c\".py": b"1", "odd/\x1b[31m.py": b""})
    index = serve(wheels)
    report = ask(environment, "bomb", "odd", "--index-url", index.address())
    assert any("outside of the environment" in text for text in report["unknowns"])
    assert report["bytes_fetched"] < 1 << 20
    assert not (tmp_path / "outside.py").exists() and not list(tmp_path.glob("home-*/cohabit-*"))


def test_another_numpy_under_what_is_there(environment, ask, tmp_path: Path):
    """What the installed files say of the NumPy that they were built with counts before anything is fetched."""
    library = elfimage.build({"machine": "x86_64", "refs": [{"name": "PyCapsule_GetPointer", "reloc": "glob"}],
                              "runpath": "module compiled against API version 0x%x but this version of numpy is 0x%x"})
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "numpy", "1.26.4"),
                        made.make_wheel(wheels, "old", "1", {"old/__init__.py": b"import numpy\n", "old/core.so": library},
                                        ("numpy",)))
    made.make_wheel(wheels, "numpy", "2.2.6")
    report = ask(environment, "numpy==2.2.6", "--no-index", "--find-links", wheels, code=1)
    [finding] = report["findings"]
    assert (finding["code"], finding["severity"]) == ("PY005", "error")
    assert "old 1 is built for NumPy 1, and NumPy 2.2.6 is installed" in finding["headline"]
    made.make_wheel(wheels, "numpy", "1.26.5")
    assert ask(environment, "numpy==1.26.5", "--no-index", "--find-links", wheels)["findings"] == []


def test_another_protobuf_under_generated_code(environment, ask, tmp_path: Path):
    """protobuf 3.19 lacks the builder, the C runtimes since 4.21 refuse what protoc wrote before 3.20, and none is too old for its own."""
    wheels = tmp_path / "wheels"
    names = ["google/protobuf/__init__.py", "google/protobuf/internal/__init__.py", "google/protobuf/descriptor.py"]
    builder = "google/protobuf/internal/builder.py"
    def protobuf(version: str, *more: str) -> Path:
        return made.make_wheel(wheels, "protobuf", version, {name: b"" for name in [*names, *more]})
    old = b"from google.protobuf import descriptor as _descriptor\nA = _descriptor.FieldDescriptor(\n  name='a')\n"
    new = b"from google.protobuf.internal import builder as _builder\n"
    environment.install(protobuf("3.20.3", builder), made.make_wheel(wheels, "older", "1", {"older/a_pb2.py": old, "older/__init__.py": b""}),
                        made.make_wheel(wheels, "newer", "1", {"newer/a_pb2.py": new, "newer/__init__.py": b""}))
    protobuf("3.19.6")
    protobuf("3.20.4", builder)
    protobuf("4.25.3", builder, "google/_upb/_message.abi3.so")
    for version, named in (("3.20.4", None), ("3.19.6", "newer"), ("4.25.3", "older")):
        report = ask(environment, f"protobuf=={version}", "--no-index", "--find-links", wheels, code=1 if named else 0)
        said = [(finding["code"], finding["severity"], finding["headline"].split(" 1 does not go with ")) for finding in report["findings"]]
        assert [(code, severity, words[0]) for code, severity, words in said] == ([("PY006", "error", named)] if named else []), version


def test_a_wheel_may_be_named_by_its_place(environment, ask, tmp_path: Path):
    """By its path and by "name @ file:": what it overwrites and what it brings is said as for its name."""
    wheels = tmp_path / "wheels"
    environment.install(made.make_wheel(wheels, "there", "1", {"shared/__init__.py": b"there = 1\n"}))
    wheel = made.make_wheel(wheels, "zz-user", "1", {"shared/__init__.py": b"other = 1\n"}, requires=("needed",))
    made.make_wheel(wheels, "needed", "3")
    for word in (str(wheel), f"zz-user @ {wheel.as_uri()}"):
        report = ask(environment, word, "--no-index", "--find-links", wheels, code=1)
        assert kinds(report) == {"zz-user": ("added", None, "1"), "needed": ("added", None, "3")}
        assert [one["code"] for one in report["findings"]] == ["FI001"], report["findings"]
        because = {one["name"].lower(): one["because"] for one in report["changes"]}
        assert because["needed"][-1] == "needed" and because["needed"][0].replace("_", "-").startswith("zz-user")


def test_no_source_is_built(environment, ask, check, tmp_path: Path):
    """Not even one that brings its own tools, and where the installer has to be asked twice."""
    wheels, ran = tmp_path / "wheels", tmp_path / "ran"
    environment.install(made.make_wheel(wheels, "zz", "0.8"))
    made.make_wheel(wheels, "zz", "0.9")
    sources = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "mine"\nbackend-path = ["."]\n',
               "mine.py": f"open({str(ran)!r}, 'w').close()\nraise SystemExit(1)\n",
               "PKG-INFO": "Metadata-Version: 2.1\nName: zz\nVersion: 1.0\n"}
    project = tmp_path / "zz-1.0"
    project.mkdir()
    for name, text in sources.items():
        (project / name).write_text(text)
    with tarfile.open(wheels / "zz-1.0.tar.gz", "w:gz") as archive:
        archive.add(project, "zz-1.0")
    report = ask(environment, "zz>0.8", "--no-index", "--find-links", wheels)
    assert kinds(report) == {"zz": ("upgraded", "0.8", "0.9")}
    check(environment, "zz==1.0", "--no-index", "--find-links", wheels, code=2)
    assert not ran.exists()
    check(environment, "zz==1.0", "--no-index", "--find-links", wheels, "--allow-build", code=2)
    assert ran.exists(), "the source would have run"
