int inner(void) { return 42; }
