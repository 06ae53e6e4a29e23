"""Runs at the start of every Python process of an observed job, and waits for torch.

A rank for which a standby waits hands its program over to that one, before anything else is done.

One finder that compares a name, and nothing imported that Python has not imported already; nothing
of ettwatch before torch is asked for. Where the Python that trains lacks ettwatch, the packages
beside this file are used, if they fit it. A `sitecustomize` that the machine has of its own runs as
if this one were not there. The text is one that any Python 3 can read: a job runs other ones too.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes time to import
BESIDE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))  # noqa: PTH120
OURS = ("ett_core", "ett_trainer_hooks", "msgspec")
OLDEST = (3, 10)
SAID = "ETT_AUTO_SAID"


class OnTorch:
    """Finds nothing; begins the observation when torch is first asked for.

    It stays in `sys.meta_path`: another thread that goes through the list at that moment would pass over
    the finder behind one that leaves.
    """

    def __init__(self) -> None:
        self.waits = True

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Called by the import system for every module that is not imported yet."""
        if name == "torch" and self.waits:
            self.waits = False
            begin()


class Beside:
    """Finds the packages beside this one, for a Python that has none of them."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:  # noqa: ARG002
        """Called by the import system where nobody else has found a module."""
        if name not in OURS:
            return None
        from importlib.machinery import PathFinder  # noqa: PLC0415 - only where it is needed

        return PathFinder.find_spec(name, [BESIDE])


def begin() -> None:
    """Load the automatic part; whatever goes wrong, the program goes on without it."""
    try:
        try:
            load()
        except ModuleNotFoundError as error:
            if error.name not in OURS:
                raise
            load_from_beside()
    except Exception as error:  # noqa: BLE001 - the boundary that protects the program
        if os.environ.get("RANK", "0") == "0" and SAID not in os.environ:
            os.environ[SAID] = "1"
            text = "ettwatch: not observed ({}: {}); install ettwatch for {}"
            print(text.format(type(error).__name__, error, sys.executable), file=sys.stderr)


def load() -> None:
    """Put the seams in place."""
    from ett_trainer_hooks.auto.install import install  # noqa: PLC0415 - only where torch is

    install()


def load_from_beside() -> None:
    """The same with the packages beside this one; leaves none of them behind where they do not fit."""
    finder = Beside()
    sys.meta_path.append(finder)  # type: ignore[arg-type]
    try:
        load()
    except BaseException:
        # the last one: it hides no other
        sys.meta_path.remove(finder)  # type: ignore[arg-type]
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        raise


def is_wanted() -> bool:
    """The environment asks for observation, and this Python is one that ettwatch supports."""
    asked = os.environ.get("ETT_JOB_ID") and os.environ.get("ETT_JOURNAL_DIR")
    off = os.environ.get("ETT_AUTO") == "0" or os.environ.get("ETT_DISABLED") == "1"
    return bool(asked) and not off and sys.version_info >= OLDEST


def of_file(folder: str, name: str, function: str) -> object:
    """A function of a file of ours, which is run by itself, as its package would take time to import."""
    path = os.path.join(os.path.dirname(os.path.dirname(HERE)), folder, name)  # noqa: PTH118, PTH120
    with open(path) as file:  # noqa: PTH123
        code = compile(file.read(), path, "exec")
    found = {"__name__": "ett_alone"}
    exec(code, found)  # noqa: S102 - a file of ours
    return found[function]


def note_start() -> None:
    """Note that torchrun has started this rank, however early it may end."""
    try:  # noqa: SIM105 - contextlib takes time to import
        of_file("identity", "elastic_starts.py", "starts_before")(os.environ, os.getpid())  # type: ignore[operator]
    except Exception:  # noqa: BLE001, S110 - the recorder notes it later, as without this file
        pass


def hand_over() -> None:
    """End as the standby does that runs this program, where there is one; else go on as usual."""
    try:  # noqa: SIM105
        of_file("standby", "handing_over.py", "hand_over")(os.environ)  # type: ignore[operator]
    except Exception:  # noqa: BLE001, S110 - it starts as it would without a standby
        pass


def run_the_next() -> None:
    """Run the `sitecustomize` that this one hides, in its place."""
    sys.path[:] = [part for part in sys.path if os.path.abspath(part) != HERE]  # noqa: PTH100
    finders = [finder.find_spec for finder in sys.meta_path if hasattr(finder, "find_spec")]
    for find in finders:
        spec = find("sitecustomize", None)
        if spec is not None and spec.loader is not None:
            module = type(sys)("sitecustomize")
            module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


if is_wanted():
    sys.meta_path.insert(0, OnTorch())
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        note_start()
if "ETT_STANDBY" in os.environ and sys.version_info >= OLDEST:
    hand_over()
run_the_next()
