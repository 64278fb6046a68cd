"""A call of a recipe: its inputs as checked values, other recipes that it calls, the server that it names. It knows of
CM, and imports neither cmind nor the engine."""
