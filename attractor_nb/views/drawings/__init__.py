"""The drawing of a graph: shapes, signs, words, colours, and the SVG that they make."""
