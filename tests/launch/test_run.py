"""`cohabit run` becomes the command: as if it had been started directly, with the repair's variables."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RULES = "cohabit-rules 1\n"


@pytest.fixture
def rules(tmp_path: Path) -> str:
    """A repair with a flag rule and a preload, for files that no program here opens."""
    path = tmp_path / "the rules"
    path.write_text(RULES + "preload libz.so.1\ndlopen -global lib%20a.so\n")
    return str(path)


def run(cohabit: str, *arguments: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run([cohabit, "run", *arguments], capture_output=True, text=True, timeout=120,
                          **more)


def test_exit_status_output_and_arguments(cohabit: str, rules: str) -> None:
    code = "import sys; print(sys.argv[1:]); print('e', file=sys.stderr); sys.exit(int(sys.stdin.read()))"
    done = run(cohabit, "--repair", rules, "--", sys.executable, "-c", code, "a b", "--repair", "",
               input="7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['a b', '--repair', '']\n", "e\n")


@pytest.mark.parametrize("redirected", ["2>&-", "<&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", "unread"])
def test_what_it_says_need_not_be_heard(cohabit: str, tmp_path: Path, redirected: str) -> None:
    """A closed, full or unread stderr takes the words of Cohabit, and nothing else: the command finds it as it would without."""
    told = tmp_path / "told"
    code = f"""import os, sys
def is_open(n):
    try: return bool(os.fstat(n))
    except OSError: return False
open({str(told)!r}, "w").write(repr([is_open(n) for n in range(3)]))
sys.exit(7)"""
    ours = [cohabit, "run", "--imports", "no_module_of_this_name", "--", sys.executable, "-c", code]
    assert "no_module_of_this_name" in subprocess.run(ours, capture_output=True, text=True).stderr
    seen = []
    for command in (ours[ours.index("--") + 1:], ours):
        if redirected == "unread":
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run(command, stderr=writing)
            os.close(writing)
        else:
            done = subprocess.run(["sh", "-c", f'exec "$@" {redirected}', "sh", *command])
        seen.append((done.returncode, told.read_text()))
        told.unlink()
    assert seen[0] == seen[1] and seen[0][0] == 7


@pytest.fixture
def failing(tmp_path: Path) -> tuple[Path, Path]:
    """An environment of its own, and a program of which the imports fail: what is said of it shows that it was looked at."""
    root = tmp_path / "an env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    (tmp_path / "app.py").write_text("import no_module_of_this_name\n")
    return root, tmp_path / "app.py"


@pytest.mark.parametrize("started_by", [
    [], ["env", "A=1"], ["nice", "-n", "3"], ["timeout", "60"], ["nohup"], ["setsid", "-w"], ["env", "timeout", "-k", "1", "9"]], ids=" ".join)
def test_the_python_that_a_command_starts(cohabit: str, failing: tuple[Path, Path], started_by: list[str]) -> None:
    root, app = failing
    done = run(cohabit, *["--", *started_by, str(root / "bin/python"), str(app)], cwd=app.parent, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("cohabit run: ")]
    assert said[0].startswith("cohabit run: the program's imports cannot be worked out") and "no_module_of_this_name" in said[0]
    assert said[1] == f"cohabit run: every order of the modules of {root}: nothing to repair"
    assert f"`cohabit fix '{root}/bin/python'`" in said[2] and done.returncode == 1


@pytest.mark.parametrize("program", [["-m", "cProfile", "app.py"], ["-m", "pdb", "-c", "q", "app.py"], ["-m", "served", "app:application"],
                                     ["bin/served", "app:application"]], ids=" ".join)
def test_the_program_that_a_program_runs(cohabit: str, failing: tuple[Path, Path], program: list[str]) -> None:
    """What is installed, or Python's own, runs code that its arguments name: what they name is looked at, and every order."""
    root, app = failing
    site = next(root.glob("lib/python3*/site-packages"))
    (site / "served.py").write_text("")
    (root / "bin/served").write_text(f"#!{sys.executable}\nimport served\n")
    command = [str(root / "bin/python"), *[word.replace("bin/", f"{root}/bin/") for word in program]]
    done = run(cohabit, "--dry-run", "--", *command, cwd=app.parent)
    named = "app.py" if "app.py" in program else "import app"
    assert "may run code that its arguments name" in done.stderr and f"every order of the modules of {root}" in done.stderr
    assert f"cohabit run: {named}: predicted, and no launch can clear it: ModuleNotFoundError: No module named 'no_module_of_this_name'" in done.stderr


@pytest.mark.parametrize("kind", ["text", "script", "script of sh"])
def test_the_python_that_a_shell_names(cohabit: str, failing: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    """Which program it runs is the shell's to know; the environment is named, and every order of it looked at."""
    root, app = failing
    (tmp_path / "env").symlink_to(root)
    text = f"cd / && exec {tmp_path}/env/bin/python -c 'raise SystemExit(7)'"
    script = tmp_path / "start"
    script.write_text(f"#!/bin/sh\n# python\n{text}\n")
    script.chmod(0o755)
    command = {"text": ["sh", "-c", text], "script": [str(script)], "script of sh": ["sh", str(script)]}[kind]
    done = run(cohabit, "--", *command)
    assert done.returncode == 7 and f"the environment is that of {tmp_path}/env/bin/python, which " in done.stderr
    assert f"every order of the modules of {tmp_path}/env: " in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "named pipe"])
def test_what_a_command_reads_is_its_own(cohabit: str, tmp_path: Path, kind: str) -> None:
    """`cat <(program)`: a pipe can be read once, and waits for its writer."""
    reading, writing = os.pipe()
    name = f"/dev/fd/{reading}"
    if kind == "named pipe":
        name = str(tmp_path / "pipe")
        os.mkfifo(name)
    with subprocess.Popen([cohabit, "run", "--", "cat", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          pass_fds=[reading]) as process:
        if kind == "named pipe":
            while Path(f"/proc/{process.pid}/comm").read_text() != "cat\n":
                time.sleep(0.01)
            Path(name).write_text("python is named in it\n")
        else:
            os.write(writing, b"python is named in it\n")
        os.close(writing)
        assert process.stdout.read() == "python is named in it\n"
    os.close(reading)


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_other_commands_too(cohabit: str, redirected: str) -> None:
    done = subprocess.run(["sh", "-c", f'exec "$@" {redirected}', "sh", cohabit, "fix", "/no/such/environment"], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")


def test_the_active_environment_is_named(cohabit: str, failing: tuple[Path, Path]) -> None:
    root, _ = failing
    done = run(cohabit, "--", "uv", "run", "python", "x", env={"VIRTUAL_ENV": str(root), "PATH": f"{root}/bin:/usr/bin:/bin"})
    assert done.returncode == 127
    for command in (["true"], ["grep", "-c", "x", "/dev/null"]):
        done = run(cohabit, "--", *command, env={"VIRTUAL_ENV": str(root), "PATH": f"{root}/bin:/usr/bin:/bin"})
        assert f"the environment is that of {root}/bin/python, the active one" in done.stderr


def test_it_is_the_same_process(cohabit: str, rules: str) -> None:
    with subprocess.Popen([cohabit, "run", "--repair", rules, "--", sys.executable, "-c",
                           "import os; print(os.getpid(), os.getppid())"], stdout=subprocess.PIPE,
                          text=True) as process:
        pid, parent = process.stdout.read().split()
    assert int(pid) == process.pid and int(parent) == os.getpid()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals(cohabit: str, rules: str, number: signal.Signals) -> None:
    # Where the tests run in the background of a shell, SIGINT would be ignored and stay so.
    with subprocess.Popen([cohabit, "run", "--repair", rules, "--", "sleep", "100"],
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
                          if number != signal.SIGKILL else None) as process:
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        process.send_signal(number)
    assert process.returncode == -number


def test_variables_are_inherited_by_children(cohabit: str, rules: str) -> None:
    code = ("import os, subprocess, sys; subprocess.run([sys.executable, '-c', "
            "'import os; print(os.environ[\"LD_PRELOAD\"]); "
            "print(open(\"/proc/self/maps\").read().count(\"libcohabit_preload.so\") > 0)'])")
    done = run(cohabit, "--repair", rules, "--", sys.executable, "-c", code,
               env=os.environ | {"LD_PRELOAD": "libm.so.6"})
    preload, mapped = done.stdout.splitlines()
    assert preload.endswith("/libcohabit_preload.so:libz.so.1:libm.so.6") and mapped == "True"
    assert done.stderr == ""


def test_dry_run_says_what_and_why(cohabit: str, rules: str) -> None:
    done = run(cohabit, "--repair", rules, "--dry-run", "--", "false")
    assert done.returncode == 0
    assert "libz.so.1" in done.stdout and "-global lib%20a.so" in done.stdout
    assert "\nfalse\n" in done.stdout


def test_dry_run_can_be_pasted_and_writes_nothing(cohabit: str, rules: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "b c", "a  b;c", "it's", "$HOME"]
    done = run(cohabit, "--repair", rules, "--no-env", "--dry-run", "--write", str(tmp_path / "run.sh"), "--", *command)
    assert done.returncode == 0 and not (tmp_path / "run.sh").exists()
    assert str(tmp_path / "run.sh") in done.stdout
    pasted = subprocess.run(["sh", "-c", done.stdout], capture_output=True, text=True)
    assert pasted.stdout == "['b c', 'a  b;c', \"it's\", '$HOME']\n", pasted.stderr


def test_no_bytes_of_what_is_no_file_of_rules_are_shown(cohabit: str, tmp_path: Path) -> None:
    for text, words in ((Path("/bin/true").read_bytes(), "is no file of rules: it has bytes that are no text"),
                        (b"cohabit-rules 1\npreload a\x1b[1m\n", "is no file of rules: it has bytes that are no text"),
                        (b"\xffule\n", 'not with "\\xffule"'), (b"cohabit-rules 1\n\xc3\n", 'not a rule: "\\xc3"')):
        (tmp_path / "rules").write_bytes(text)
        done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", "true")
        assert done.returncode == 125 and words in done.stderr, done.stderr
        assert done.stderr.isascii() and done.stderr.strip().isprintable()


def test_own_failures_and_the_commands(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("something else\n")
    (tmp_path / "not-executable").write_text("")
    assert run(cohabit, "--repair", str(tmp_path / "bad"), "--", "true").returncode == 125
    assert run(cohabit, "--repair", str(tmp_path / "missing"), "--", "true").returncode == 125
    assert run(cohabit, "--repair", "none", "--", "no-such-command-here").returncode == 127
    assert run(cohabit, "--repair", "none", "--", str(tmp_path / "missing")).returncode == 127
    assert run(cohabit, "--repair", "none", "--", str(tmp_path / "not-executable")).returncode == 126
    assert run(cohabit, "--repair", "none", "--", "true").returncode == 0
    for wrong in (["--no-such-option", "--", "true"], ["--imports", "a b", "--", "true"], ["--write"], [],
                  ["--gpu-memory", "torch=120%", "--", sys.executable, "-V"],
                  ["--defer", "torch.nn", "--", sys.executable, "-V"]):
        assert run(cohabit, *wrong).returncode == 125, wrong


def test_a_program_that_is_no_python(cohabit: str, tmp_path: Path) -> None:
    done = run(cohabit, "--", "/bin/echo", "hello", env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "started as it is" in done.stderr


def test_installed_where_a_path_has_spaces(cohabit: str, tmp_path: Path, rules: str) -> None:
    """LD_PRELOAD cannot hold a space: a link stands in for the library."""
    place = tmp_path / "a b: c"
    place.mkdir()
    for file in (Path(cohabit), *Path(cohabit).parent.glob("libcohabit_*.so")):
        shutil.copy(file, place)
    (tmp_path / "runtime").mkdir(mode=0o700)
    done = run(str(place / "cohabit"), "--repair", rules, "--", sys.executable, "-c",
               "print(open('/proc/self/maps').read().count('libcohabit_preload.so') > 0)",
               env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path / "runtime")})
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_written_script_takes_no_commands_from_names(cohabit: str, tmp_path: Path) -> None:
    """The name of a library may hold any bytes, a newline too."""
    rules, script = tmp_path / "rules", tmp_path / "run_app.sh"
    rules.write_text(RULES + "dlopen -global /x/a%0atouch%20caught%0a.so\n")
    assert run(cohabit, "--repair", str(rules), "--write", str(script), "--", "/bin/true").returncode == 0
    subprocess.run([str(script)], check=True, cwd=tmp_path)
    assert not (tmp_path / "caught").exists()


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_written_script(cohabit: str, rules: str, tmp_path: Path) -> None:
    script = tmp_path / "run_app.sh"
    done = run(cohabit, "--repair", rules, "--write", str(script), "--", sys.executable, "-c",
               "import os, sys; print(os.environ['LD_PRELOAD'].split(':')[-1], sys.argv[1:])", "it's")
    assert done.returncode == 0, done.stderr
    subprocess.run(["shellcheck", str(script)], check=True)
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    said = subprocess.run([str(script), "more"], capture_output=True, text=True, env=plain)
    assert (said.stdout, said.stderr) == ("libz.so.1 [\"it's\", 'more']\n", "")
    said = subprocess.run([str(script)], capture_output=True, text=True, env=plain | {"LD_PRELOAD": "libm.so.6"})
    assert said.stdout == "libm.so.6 [\"it's\"]\n", "the user's own is kept, behind ours"


def test_rules_with_line_ends_of_windows(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(b"cohabit-rules 1\r\npreload libz.so.1\r\n")
    done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", "true")
    assert done.returncode == 125 and "Windows" in done.stderr


def test_rules_that_are_cut_off(cohabit: str, tmp_path: Path) -> None:
    """Half a path would be a rule about nothing."""
    (tmp_path / "rules").write_text("cohabit-rules 1\npreload /usr/lib/libz.s")
    done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", "true")
    assert done.returncode == 125 and "cut off" in done.stderr and '"preload /usr/lib/libz.s"' in done.stderr


def test_rules_of_another_environment(cohabit: str, tmp_path: Path) -> None:
    there = tmp_path / "other/lib/python3.11/site-packages/lib.so"
    there.parent.mkdir(parents=True)
    there.write_text("")
    (tmp_path / "rules").write_text(f"cohabit-rules 1\ndlopen -global {there}\ndlopen -global {there}.gone\n")
    done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", sys.executable, "-c", "")
    assert done.returncode == 0
    assert f"{there}, which the rules name, is of another environment than" in done.stderr
    assert f"{there}.gone, which the rules name, is not there" in done.stderr


def test_the_switch_is_told(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("cohabit-rules 1\ndlopen -global libx.so\n")
    command = [cohabit, "run", "--repair", str(tmp_path / "rules"), "--", "true"]
    off = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"COHABIT_PRELOAD": "off"})
    on = subprocess.run(command, capture_output=True, text=True)
    assert "COHABIT_PRELOAD=off" in off.stderr and "COHABIT_PRELOAD" not in on.stderr


def test_written_script_of_a_relative_command(cohabit: str, tmp_path: Path) -> None:
    """Starts from any directory; what is quoted on purpose is no remark of shellcheck."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    subprocess.run([cohabit, "run", "--repair", "none", "--write", "s.sh", "--", "bin/python", "-c", "print('`$HOME`')"],
                   cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "s.sh"], cwd="/", capture_output=True, text=True).stdout == "`$HOME`\n"
    if shutil.which("shellcheck"):
        assert subprocess.run(["shellcheck", tmp_path / "s.sh"], capture_output=True, text=True).stdout == ""
    (tmp_path / "app.py").write_text("import sys; print(sys.argv[1:])\n")
    subprocess.run([cohabit, "run", "--repair", "none", "--write", "a.sh", "--", "bin/python", "-B", "app.py", "app.py"],
                   cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "a.sh", "b"], cwd="/", capture_output=True, text=True).stdout == "['app.py', 'b']\n"


def test_an_import_that_is_not_there(cohabit: str) -> None:
    done = run(cohabit, "--imports", "no_such_module_at_all", "--", sys.executable, "-c", "")
    assert done.returncode == 0 and "No module named 'no_such_module_at_all'" in done.stderr


def test_a_misspelled_module_to_defer(cohabit: str, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("")
    done = subprocess.run([cohabit, "run", "--defer", "torhc", "--", sys.executable, "-c", ""], capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0 and "no module torhc here (did you mean torch?)" in done.stderr


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_command_that_is_not_there(cohabit: str, tmp_path: Path, more: list[str]) -> None:
    done = run(cohabit, "--repair", "none", *more, "--", str(tmp_path / "nothing"))
    assert (done.returncode, done.stdout) == (127, "") and f"there is no command {tmp_path}/nothing" in done.stderr


@pytest.mark.parametrize("kind", ["activate", "where the script lies", "cd", "PATH", "variable", "default", "sourced", "quoted", "make", "conda"])
def test_the_environment_that_a_shell_text_chooses(cohabit: str, failing: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    """What each shell and make really start is asked of them: the program prints its sys.prefix."""
    root, app = failing
    app.write_text("import sys\nprint(sys.prefix)\n")
    place = tmp_path / "my site"
    place.mkdir()
    (place / "more").write_text(f'. "{root}/bin/activate"\n')
    (tmp_path / "conda").write_text('#!/bin/sh\n[ "$1" = activate ] && PATH="$CONDA_PREFIX/envs/$2/bin:$PATH"\n')
    text = {
        "activate": f'. "{root}/bin/activate"\npython app.py\n',
        "where the script lies": '. "$(dirname "$0")/../an env/bin/activate"\nexec python app.py\n',
        "cd": f'cd "{tmp_path}" && . ./"an env"/bin/activate && python app.py\n',
        "PATH": f'export PATH="{root}/bin:$PATH"\npython app.py\n',
        "variable": f'VENV="{root}"  # where python is\nif true; then\n  "$VENV/bin/python" app.py\nfi\n',
        "default": '"${NO_SUCH_VENV:-' + str(root) + '}/bin/python" app.py\n',
        "sourced": f'. "{place}/more"\npython app.py\n',
        "quoted": f"sh -c '\"{root}/bin/python\" app.py'\n",
        "make": f"VENV := {root}\nrun:\n\t@PATH=\"$(VENV)/bin:$$PATH\"; python app.py\n",
        "conda": '. "$PWD/conda" activate inner\npython app.py\n',
    }[kind]
    script = place / ("Makefile" if kind == "make" else "start.sh")
    script.write_text(text)
    command = ["make", "-s", "-f", str(script)] if kind == "make" else ["bash", str(script)]
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/inner").symlink_to(root)
    variables = os.environ | {"CONDA_PREFIX": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    if kind == "conda":  # by a function of the shell, as conda's own is
        script.write_text('conda() { PATH="$CONDA_PREFIX/envs/$2/bin:$PATH"; }\nconda activate inner\npython app.py\n')
    done = subprocess.run([cohabit, "run", "--", *command], cwd=tmp_path, env=variables, capture_output=True, text=True)
    python = f"{tmp_path}/envs/inner/bin/python" if kind == "conda" else f"{root}/bin/python"
    assert f"the environment is that of {python}, which " in done.stderr, done.stderr
    assert done.stdout == f"{Path(python).parent.parent}\n"


@pytest.mark.parametrize("text", ["$(" * 5000, "${a:-" * 5000, "'" + '"$' * 999, "`(|" * 999 + "python", "source", ". ", "conda run -n", "\\", "$",
                                  "PATH=", "python=\n=python", "cd\ncd /\ncd ..\npython"], ids=range(12))
def test_odd_texts_of_a_shell(cohabit: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "odd").write_text(text)
    done = run(cohabit, "--dry-run", "--", "sh", str(tmp_path / "odd"))
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == f"sh {tmp_path}/odd"


@pytest.mark.parametrize("words", [["env", "-i"], ["env", "-"], ["timeout", "9", "env", "-u", "X", "-i"], ["env", "-vi", "A=1"]], ids=" ".join)
def test_who_drops_the_variables_is_told(cohabit: str, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "rules").write_text("cohabit-rules 1\npreload libm.so.6\n")
    rest = ["/usr/bin/python3", "-c", "import os; print(os.environ.get('LD_PRELOAD'))"]
    done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", *words, *rest)
    assert done.stdout.splitlines()[-1] == "None" and "what is set here may not reach it" in done.stderr
    done = run(cohabit, "--repair", str(tmp_path / "rules"), "--", "env", "-u", "X", "A=-i", *rest)
    assert done.stdout == "libm.so.6\n" and "may not reach" not in done.stderr


def test_options_that_look_like_modules(cohabit: str, failing: tuple[Path, Path]) -> None:
    root, app = failing
    site = next(root.glob("lib/python3*/site-packages"))
    (site / "served.py").write_text("")
    done = run(cohabit, "--dry-run", "--", str(root / "bin/python"), "-m", "served", "-p", "no:cacheprovider", cwd=app.parent)
    assert "import no" not in done.stderr and "may run code that its arguments name" in done.stderr
