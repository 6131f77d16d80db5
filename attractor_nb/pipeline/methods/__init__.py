"""The methods that take options of runs and maps.

A method names its own parameters, and its options by one TypedDict, which type checkers read. ``takes``
(``runtime/prepare/run_options.py``) composes the signature and the docstring that users see. What a method does
with the options is elsewhere (``runtime/launch``, ``maps/map_launch``, ``runtime/fork``).

A keyword that is no option is an error for type checkers, and when it is called an ``OptionError`` that names the
nearest option.
"""
