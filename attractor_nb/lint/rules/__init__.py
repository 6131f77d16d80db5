"""The built-in rules, one module for each part of a pipeline that they look at."""
