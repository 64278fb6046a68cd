"""Profiles of Microsoft's VirtualClient: read, resolved, and refused or turned into steps. Pure.

`expressions` computes, `document` reads a profile, `options` the command line, `resolving` puts both together,
`steptypes` says what each Type means here, `steps` makes the list of steps and its text.
"""
