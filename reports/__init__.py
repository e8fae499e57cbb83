"""What a reader sees of stored runs: tables on the console and in Markdown."""
