"""What users import: estimators that validate, name and delegate."""
