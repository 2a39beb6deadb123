"""The sections of a report, each a function from the report to blocks."""
