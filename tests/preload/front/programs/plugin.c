/* A library with a function of its own that happens to bear a driver's name. */
int cuMemAlloc_v2(unsigned long long* block, unsigned long bytes) { return *block = 0x7000 + bytes, 0; }
