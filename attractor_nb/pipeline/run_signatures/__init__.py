"""What can be done with a run, a stage of it or a row of ``runs()``, with all options; see ``signatures``."""
