"""``python -m tacit`` is ``tacit``."""

from tacit.cli.main import main

main()
