"""What report.json holds, part by part, as plain values."""
