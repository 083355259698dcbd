"""Entry point of `python -m cprime`, which runs the command line."""

from cprime.cli import main

if __name__ == "__main__":
    main()
