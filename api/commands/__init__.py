"""The commands of `pagemill`, a module per kind; api/cli.py puts them together."""
