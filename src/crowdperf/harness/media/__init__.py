"""Pictures, sound, volumes and text from files: what data sets and models read them with."""
