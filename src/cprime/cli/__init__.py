"""The command line: arguments, files, progress and tables; no numerics. `main` is the entry point."""


def main() -> None:
    """Run `cprime` on the arguments of the process."""
    from cprime.cli.app import app

    app(prog_name="cprime")
