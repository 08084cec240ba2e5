void meet() {
#ifdef MEND
    barrier();
#endif
#ifdef WRONG
    barrier(1);
#endif
}
