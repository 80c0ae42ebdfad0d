"""Files: tables and models."""
