"""`auditkit completion`: commands and options for the shell to complete."""

import argparse
from typing import Any

from auditkit.cli.terminal import say

SHELLS = ("bash", "zsh")
SCRIPT = """\
# auditkit completion bash > ~/.local/share/bash-completion/completions/auditkit
_auditkit() {{
  local words inside options current="${{COMP_WORDS[COMP_CWORD]}}"
  case "${{COMP_WORDS[*]:1:COMP_CWORD-1}} " in
{cases}
  esac
  # where no word is due, the shell offers files
  case "$current" in
    -*) words="$options" ;;
    *) words="$inside" ;;
  esac
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{choices}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _auditkit auditkit"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_to(rooms: Any, whole: argparse.ArgumentParser) -> None:
    """Add the command to those of the program, whose commands and options it will list."""
    command = rooms.add_parser("completion", help="a script by which the shell completes")
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=lambda options: _run(options, whole))


def _run(options: argparse.Namespace, whole: argparse.ArgumentParser) -> int:
    say((ZSH if options.shell == "zsh" else "") + script(whole))
    return 0


def script(whole: argparse.ArgumentParser) -> str:
    """Return what bash runs to complete a command line."""
    cases: list[str] = []
    choices: dict[str, str] = {}
    for words, parser in _parsers(whole, ()):
        inside = [
            str(name)
            for action in parser._actions
            for name in action.choices or ()
            if not action.option_strings
        ]
        options = [name for name in parser._option_string_actions if name.startswith("--")]
        pattern = "".join(f"{word} " for word in words)
        cases.append(
            f'    "{pattern}"*) inside="{" ".join(inside)}" options="{" ".join(options)}" ;;'
        )
        choices |= {
            f"{words[0] if words else ''} {name}": " ".join(map(str, action.choices))
            for name, action in parser._option_string_actions.items()
            if action.choices
        }
    # the longest come first: what a command adds is said before what the program has
    cases.sort(key=lambda case: -case.index('"*)'))
    picked = [f'    "{name}") words="{values}" ;;' for name, values in choices.items()]
    return SCRIPT.format(cases="\n".join(cases), choices="\n".join(picked))


def _parsers(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> list[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    found = [(words, parser)]
    for action in _commands(parser):
        for name, inner in (action.choices or {}).items():
            found += _parsers(inner, (*words, name))
    return found


def _commands(parser: argparse.ArgumentParser) -> list[Any]:
    return [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
