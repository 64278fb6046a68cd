"""Pages and an API over a database of MLPerf results. Pages come from the server, have no scripts and load no files from
other hosts.

`pages` turns what the room `store` keeps into HTML, `charts` draws, `app` serves it, `static_site` writes it as files.
"""
