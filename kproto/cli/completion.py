"""``completion``, a command of each program: print the shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kproto.cli.terminal import echo_text

__all__ = ["completion_command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and their values.

    \b
    To install it, here for kproto:
      bash  kproto completion bash > ~/.local/share/bash-completion/completions/kproto
      zsh   kproto completion zsh > DIR/_kproto, where DIR is in $fpath
      fish  kproto completion fish > ~/.config/fish/completions/kproto.fish
    """
    root = context.find_root()
    name = root.info_name or ""
    made = get_completion_class(shell)
    assert made is not None
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    echo_text(made(root.command, {}, name, variable).source())
