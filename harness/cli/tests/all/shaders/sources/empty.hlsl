uint twice(uint x) { return 2 * x; }
