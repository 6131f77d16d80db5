"""The methods that take options of runs and maps, each with all of them written out.

What a person reads of a method, in ``help()``, at Shift-Tab or in an editor, is its signature and its
Args; so both are in the source, where Jedi and type checkers read them, too. ``make docs`` writes the
options there, of the fields of ``RunOptions`` and ``MapOptions`` and the meanings in
``model/vocabulary/option_meanings.py``; what a method does with them is elsewhere (``runtime/launch``,
``maps/map_launch``, ``runtime/fork``).

A keyword that is none of them arrives in ``unknown``: for type checkers an error, and when it is called an
``OptionError`` that names the nearest option.
"""
