"""The three small languages of a pipeline: DOT, edge conditions, model stylesheets.

None imports another. Each has a ``grammar.lark``, parse tables that lark made from it, a
syntax tree, a parser and one module for its meaning. None knows lint, the engine, files or the terminal.
"""
