"""`python -m ett_trainer_hooks.standby CONTROL WANTED SOCKET`: the keeper, and then the standby."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from ett_trainer_hooks.standby.keeper import keep
from ett_trainer_hooks.standby.wanted import Wanted

if __name__ == "__main__":
    _control, _place, _path = sys.argv[1:]
    try:
        _wanted = Wanted.load(Path(_place))
    except FileNotFoundError:  # the rank has started again
        sys.exit()
    keep(socket.socket(fileno=int(_control)), _wanted, Path(_path))()
