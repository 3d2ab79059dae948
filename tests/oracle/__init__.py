"""The objective as plain loops, written from the paper's equations; shares no code with efemb."""
