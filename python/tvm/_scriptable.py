# SPDX-License-Identifier: Apache-2.0
"""`node.script()` and `node.show()`."""


class Scriptable:
    """What every node can do: print itself as TVMScript. Options: see `PrinterConfig`."""

    __slots__ = ()

    def script(self, **options):
        """The program as TVMScript."""
        from tvm.runtime.script_printer import PrinterConfig, _print

        return str(_print(self, PrinterConfig(**options)))

    def _relax_script(self, **options):
        return self.script(**options)

    def show(self, style=None, black_format=None, **options):
        """Prints the program, coloured where the terminal or notebook can show colours."""
        from tvm.script.highlight import cprint

        cprint(self.script(**options), style=style, black_format=black_format)
