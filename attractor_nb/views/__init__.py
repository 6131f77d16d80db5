"""Values to pictures and words: graphs, runs and findings as SVG, HTML, Mermaid and text.

Everything here is a pure function of its arguments and knows no notebook and no terminal. A drawing goes
``Graph -> Scene -> Layout -> SVG``.
"""
