"""The command line, ``drocox COMMAND``; the reproduction's commands are in ``drocox.paper.cli``.

Arguments are checked before anything slow is imported, so a usage error comes at once.
"""

import argparse
import difflib
import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from drocox import __version__
from drocox.paper import cli as paper


class _Parser(argparse.ArgumentParser):
    """A parser whose error messages fit the window."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, paper.fill(f"{self.prog}: error: {message}") + "\n")


def _parser() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    """The parser, and those of its commands by name."""
    parser = _Parser(
        "drocox",
        description="Distributionally robust Cox models: the data, the experiments and their "
        "tables.",
        epilog="drocox COMMAND --help shows the arguments of a command, with an example.",
    )
    parser.add_argument("--version", action="version", version=f"drocox {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable, example: str) -> argparse.ArgumentParser:
        """Add a command; ``run`` gets its arguments, and ``args.usage(message)`` to refuse them."""
        text = run.__doc__
        sub = commands.add_parser(name, help=text, description=text, epilog=f"example: {example}")
        sub.set_defaults(run=run, usage=sub.error)
        return sub

    paper.add_commands(command)
    return parser, commands.choices


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        By default the arguments of this process.

    Returns
    -------
    int
        Exit status: 0 if all went well, 1 if a check found problems, 2 for a wrong argument or an
        unusable store, 130 after Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser, commands = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        close = difflib.get_close_matches(argv[0].lower(), commands, 1)
        hint = f" did you mean {close[0]!r}?" if close else ""
        parser.error(f"unknown command {argv[0]!r};{hint} choose one of: {', '.join(commands)}")
    args = parser.parse_args(argv)
    try:
        status = int(args.run(args) or 0)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        kept = "; what was finished is kept, run the same command to resume"
        print(f"drocox: interrupted{kept if argv[0] == 'sweep' else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has had enough, as in: drocox data | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as if the signal of a closed pipe had ended the process
    except Exception as error:
        from drocox.paper.store import StoreError  # here, not above: slow to import

        if not isinstance(error, StoreError | ValueError | TypeError | ModuleNotFoundError):
            raise
        # an extra that is missing has a name, unlike our own messages of this kind
        advice = '; run: pip install "drocox[paper]"' if getattr(error, "name", None) else ""
        print(paper.fill(f"drocox: {error}{advice}"), file=sys.stderr)
        return 2
    finally:
        gc.freeze()  # what is imported stays: the collection at exit need not look at it


if __name__ == "__main__":
    sys.exit(main())
