"""Pages and an API over a database of MLPerf results. Pages come from the server, have no scripts and load no file of
another host.

`pages` turns what the room `store` keeps into HTML, `home_chart` draws many results, `app` serves the pages, and
`static_site` writes them as files.
"""
