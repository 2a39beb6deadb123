"""One module per subcommand of `toolkit`; imported only when it is called."""
