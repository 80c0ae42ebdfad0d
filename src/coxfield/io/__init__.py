"""Files: tables, models, and files written whole or not at all."""
