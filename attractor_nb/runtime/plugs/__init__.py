"""What a run is wired with: cache, cassette, executor, session, trace, people."""
