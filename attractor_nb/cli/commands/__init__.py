"""Commands by subject, as typer reads them: arguments, options and help."""
