"""What-if: questions, tables, figures and words."""
