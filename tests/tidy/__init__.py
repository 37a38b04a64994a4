"""The house rules that no linter knows."""
