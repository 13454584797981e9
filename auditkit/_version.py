"""The version of the installed package, which loads when somebody asks for it."""

from importlib.metadata import version

__version__ = version("dp-auditkit")
