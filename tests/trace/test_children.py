"""Processes that the command starts are left alone, or with --children traced each for itself."""
import glob
import os

import pytest

from trace_world import read_trace


def child_traces(out):
    return {path[len(out) + 1:]: read_trace(path) for path in sorted(glob.glob(out + ".*"))}


def trace(world, tmp_path, *operations, **options):
    out = str(tmp_path / "out")
    run = world.trace(*operations, out=out, **options)
    return run, child_traces(out)


def test_without_the_option_children_are_not_traced(world, tmp_path):
    plain = world.path("libplain.so")
    run, children = trace(world, tmp_path, f"fork={plain}",
                          f"spawn={world.program},open=@,1", "spawn=/usr/bin/env", "open=@,1")
    assert children == {}
    assert [c["name"] for c in run.calls] == [None]
    assert "COHABIT_TRACE_RUN" not in run.stdout and "LD_DEBUG" not in run.stdout


def test_spawned_child(world, tmp_path):
    run, children = trace(world, tmp_path, f"open={world.path('libplain.so')},2",
                          f"spawn={world.program},open=@,crash", options=["--children"])
    (child,) = children.values()
    assert [c["name"] for c in run.calls] == [world.path("libplain.so")]
    assert child[0]["parent_pid"] == run.start["pid"] and child[0]["forked"] is False
    assert child[0]["arguments"][0] == world.program
    assert "LD_PRELOAD" not in dict(child[0]["environment"])
    assert [c["name"] for c in child if "call" in c] == [None]


def test_forked_child_has_its_parents_past(world, tmp_path):
    plain, other = world.path("libplain.so"), world.path("libother.so")
    run, children = trace(world, tmp_path, f"open={plain},2", f"fork={other}", "open=@,1",
                          options=["--children"])
    ((pid, child),) = children.items()
    assert [c["name"] for c in run.calls] == [plain, None]
    assert [c["name"] for c in child if "call" in c] == [plain, other]
    assert child[0]["forked"] is True and child[0]["parent_pid"] == run.start["pid"]
    assert str(child[0]["pid"]) == pid


def test_exec_in_the_same_process(world, tmp_path):
    plain = world.path("libplain.so")
    run, children = trace(world, tmp_path, f"open={plain},2",
                          f"exec={world.path('starter')},cd=/", options=["--children"])
    ((name, second),) = children.items()
    assert name == f"{run.start['pid']}.2"
    assert [c["name"] for c in run.calls] == [plain]
    assert second[0]["program"] == world.path("starter")
    assert all(c.get("during_start") for c in second if "call" in c)
    assert len([c for c in second if "call" in c]) == 3


def test_a_child_without_any_environment_may_be_there(world, tmp_path):
    """Nothing of it can be seen, and that is said."""
    run, children = trace(world, tmp_path, command=["/usr/bin/env", "-i", world.program, f"open={world.path('libother.so')},2"],
                          options=["--children"])
    assert run.status == 0 and children == {}
    assert any("emptied environment (env -i) nothing is seen" in spot for spot in run.end["blind_spots"])


def test_exec_without_the_option_is_a_blind_spot(world, tmp_path):
    run, children = trace(world, tmp_path, f"exec={world.path('starter')},cd=/")
    assert children == {} and run.calls == []
    assert any("replaced itself" in s for s in run.end["blind_spots"])


@pytest.mark.parametrize("how", ["exec ", ""], ids=["replaced", "started"])
def test_a_program_without_the_tracer_is_a_blind_spot(world, tmp_path, how):
    """A start script that sets LD_PRELOAD (to tcmalloc, say) takes the tracer away; ld.so's log goes on under the same number."""
    command = ["/bin/sh", "-c", f"LD_PRELOAD={world.path('libplain.so')} {how}{world.program} open={world.path('libother.so')},2; true"
               if not how else f"export LD_PRELOAD={world.path('libplain.so')}; exec {world.program} open={world.path('libother.so')},2"]
    run, children = trace(world, tmp_path, command=command, options=["--children"])
    assert run.status == 0 and "opened" in run.stdout
    assert children == {} and run.calls == [], "calls of a program that was not traced"
    said, = [spot for spot in run.end["blind_spots"] if "without the tracer" in spot]
    assert os.path.basename(world.program) in said and ("replaced itself" in said) == bool(how)


def test_shell_pipeline(world, tmp_path):
    command = ["/bin/sh", "-c", f"{world.program} open=@,1 | /bin/cat; {world.program} open=@,2"]
    run, children = trace(world, tmp_path, command=command, options=["--children"])
    assert run.status == 0 and run.stdout.count("opened") == 2
    programs = sorted(os.path.basename(c[0]["program"]) for c in children.values())
    assert programs.count("opener") >= 1 and "cat" in programs
