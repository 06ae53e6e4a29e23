"""Everything that runs inside or beside a training process.

The base package needs msgspec only; nothing here imports torch when it is imported.
"""

from ett_trainer_hooks.recording.recorder import Recorder

__all__ = ["Recorder"]
