"""`cohabit doctor --trace` runs the imports and leaves the environment as it was."""
import os
import subprocess
import sys


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
