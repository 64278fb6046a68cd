"""What lies on the disk: files and locks, repositories and their index, the store of cache entries.

In order, each module imports only earlier ones and earlier packages:

checkout, os_errors, files, locks, recipe_index, metafile, repos, recipe_files, entryfile, content, entry_index,
removal, usage, store.
"""
