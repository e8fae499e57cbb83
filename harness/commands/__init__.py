"""What the subcommands of `steeltrap` do, one module each."""
