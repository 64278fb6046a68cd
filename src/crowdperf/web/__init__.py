"""Pages and an API over a database of MLPerf results: HTML from the server, no scripts, nothing from elsewhere.

`pages` turns what the room `store` keeps into HTML, `charts` draws, `app` serves it, `static_site` writes it as files.
"""
