"""`cohabit doctor --trace` runs the imports and leaves the environment as it was."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path


def test_one_recording_at_a_time(cohabit, tmp_path):
    done = subprocess.run([cohabit, "doctor", "--imports", "app", "--trace", "--replay", tmp_path / "t"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "--replay" in done.stderr


def test_a_space_does_not_join_two_names(cohabit):
    done = subprocess.run([cohabit, "doctor", "--imports", "json, os path", "--trace"], capture_output=True, text=True)
    assert done.returncode == 2 and "os path" in done.stderr


def test_nothing_is_written_into_the_environment(cohabit, tmp_path):
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    site, = environment.glob("lib/python3*/site-packages")
    (site / "app.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import other'])\n")
    (site / "other.py").write_text("")
    before = sorted(environment.rglob("*"))
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([cohabit, "doctor", environment, "--imports", "app", "--trace"], env=variables,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(environment.rglob("*")) == before


def cut(trace, lines, tmp_path):
    """The first lines of a trace: what a full disk or a copy that was broken off leaves."""
    path = tmp_path / "cut"
    path.write_text("".join(trace.read_text().splitlines(keepends=True)[:lines]))
    return path


def test_a_recording_without_an_end_is_not_called_sound(cohabit, tmp_path):
    trace = tmp_path / "trace"
    subprocess.run([cohabit, "trace", "--out", trace, "--", sys.executable, "-c", "import json"], check=True)
    whole = subprocess.run([cohabit, "doctor", "--replay", trace, "--format", "json"], capture_output=True, text=True)
    part = subprocess.run([cohabit, "doctor", "--replay", cut(trace, 1, tmp_path), "--format", "json"],
                          capture_output=True, text=True)
    assert (whole.returncode, json.loads(whole.stdout)["orders"][0]["verdict"]) == (0, "sound")
    assert json.loads(part.stdout)["orders"][0]["verdict"] == "unknown"
    assert any("how the process ended" in text for text in json.loads(part.stdout)["unknowns"])


def test_a_recording_is_not_given_other_imports(cohabit, tmp_path):
    trace = tmp_path / "trace"
    subprocess.run([cohabit, "trace", "--out", trace, "--", sys.executable, "-c", "import json, csv"], check=True)
    for imports, status in {"json,csv": 0, "csv,json": 2, "json": 2}.items():
        done = subprocess.run([cohabit, "doctor", "--imports", imports, "--replay", trace],
                              capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert status == 0 or "json, csv" in done.stderr


def test_imports_of_what_is_no_python(cohabit, tmp_path):
    trace = tmp_path / "trace"
    subprocess.run([cohabit, "trace", "--out", trace, "--", "/bin/true"], check=True)
    done = subprocess.run([cohabit, "doctor", "--imports", "json", "--replay", trace], capture_output=True, text=True)
    assert done.returncode == 2 and "/bin/true" in done.stderr and not done.stdout
    assert subprocess.run([cohabit, "doctor", "--replay", trace], capture_output=True).returncode == 0


def test_a_damaged_cache_of_the_loader_is_told(cohabit, tmp_path):
    trace = tmp_path / "trace"
    subprocess.run([cohabit, "trace", "--out", trace, "--", "/bin/true"], check=True)
    root = tmp_path / "root"
    for directory in ("/lib64", "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"):
        if os.path.isdir(directory):
            (root / directory[1:]).mkdir(parents=True, exist_ok=True)
            for name in ("ld-linux-x86-64.so.2", "libc.so.6"):
                if os.path.exists(f"{directory}/{name}"):
                    shutil.copy(f"{directory}/{name}", root / directory[1:] / name)
    for path, content in {"bin/true": Path(os.path.realpath("/bin/true")).read_bytes(),
                          "etc/ld.so.cache": b"x" * 40}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    done = subprocess.run([cohabit, "doctor", "--root", root, "--replay", trace, "--format", "json"],
                          capture_output=True, text=True)
    assert any(text.startswith("ld.so.cache: neither magic") for text in json.loads(done.stdout)["unknowns"]), done
