"""The command line, ``drocox COMMAND``.

``audit`` is in :mod:`drocox.auditing.cli`, the commands of the reproduction are in
:mod:`drocox.paper.cli`. Arguments are checked before slow imports, so usage errors appear at once.
"""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from drocox import __version__, _checks
from drocox.auditing.cli import add_audit
from drocox.paper import StoreError
from drocox.paper import cli as paper
from drocox.terminal import fill


class _Once(argparse.Action):
    """Store a value; a second one for the same option is an error."""

    def __call__(self, parser, namespace, values, option_string=None):
        if option_string and getattr(namespace, self.dest) != self.default:
            parser.error(f"{option_string} is given twice; give it once")
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """A parser with error messages of at most 80 columns and no repeated options."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.register("action", None, _Once)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, fill(f"{self.prog}: error: {message}") + "\n")


def _parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser, and the parsers of its commands by name."""
    parser = _Parser(
        "drocox",
        description="Distributionally robust Cox models: an audit of your own data, and the "
        "paper's data, experiments and tables.",
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

    add_audit(command)
    paper.add_commands(command)
    return parser, commands.choices


def main(argv: list[str] | None = None) -> int:
    """Run a command (by default with the arguments of this process) and return its exit status.

    0: success; 1: a check found problems; 2: a wrong argument or an unusable store; 130: Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser, commands = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        hint = _checks.like(argv[0].lower(), commands)
        parser.error(f"unknown command {argv[0]!r};{hint} choose one of: {', '.join(commands)}")
    args = parser.parse_args(argv)
    args.words = list(argv)  # for pages that show their command
    try:
        status = int(args.run(args) or 0)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        keeps = argv[0] == "sweep" or getattr(args, "all", False)  # verify --all
        kept = "; what was finished is kept, run the same command to resume" if keeps else ""
        print(f"drocox: interrupted{kept}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reading process has ended, as in: drocox data | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # the exit status after SIGPIPE
    except (StoreError, ValueError, TypeError, ModuleNotFoundError, OSError) as error:
        # a missing package has a name, unlike our own ModuleNotFoundError
        advice = f"; {_checks.install('paper')}" if getattr(error, "name", None) else ""
        print(fill(f"drocox: {error}{advice}"), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
