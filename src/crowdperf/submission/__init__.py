"""From results folders to a submission tree: existing and missing runs, written files. It does not judge: the gate
does."""
