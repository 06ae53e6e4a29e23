"""`python -m ett_trainer_hooks.auto`: prints the directory to put in front of PYTHONPATH."""

from ett_trainer_hooks.auto import SITE

if __name__ == "__main__":
    print(SITE)
