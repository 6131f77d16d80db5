"""The front-end's files: ES modules and style sheets that know no Jupyter, only a host (``host.js``)."""
