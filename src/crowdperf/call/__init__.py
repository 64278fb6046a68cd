"""A call of a recipe: its inputs as checked values, other recipes that it calls, the server that it names."""
