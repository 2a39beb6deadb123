"""The parts every architecture is built from, one idea of the chapter a file."""
