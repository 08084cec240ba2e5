/* Faults of memory that the program can read: part of fault.c. */

static struct { uint64_t memory, size; void *pointer, *copy; } mapped[4096];
static unsigned mapped_count;

/* Writes the device's words to the copies that the program has mapped. */
static void show_copies(void) {
    for (unsigned i = 0; i < mapped_count; i++)
        if (mapped[i].copy) memcpy(mapped[i].copy, mapped[i].pointer, mapped[i].size);
}

static void spoil(uint32_t with) {
    for (unsigned i = 0; i < mapped_count; i++)
        if (mapped[i].pointer)
            for (uint64_t at = 0; at + 4 <= mapped[i].size; at += 4)
                *(uint32_t *)((char *)mapped[i].pointer + at) = with;
}

/* Number of words that are changed together, number of words per memory that are searched for results, and limit of the
 * distance of exchanged words. */
enum { GROUP = 4, SEARCHED = 1 << 18, DISTANCE = 4096 };

/* Returns true for small numbers that are not all zero. Results of tests have this form; other words of the program do not. */
static int are_results(const uint32_t *words) {
    int some = 0;
    for (int word = 0; word < GROUP; word++) {
        if (words[word] > 2) return 0;
        some |= words[word] > 0;
    }
    return some;
}

/* Exchanges the first of `count` words with the next different result. */
static void exchange(uint32_t *words, uint64_t count) {
    for (uint64_t word = 1; word < count && word < DISTANCE && words[word] <= 2; word++)
        if (words[word] != words[0]) {
            uint32_t first = words[0];
            words[0] = words[word];
            words[word] = first;
            return;
        }
}

/* The queue of the last submission. */
static Handle last_queue;

/* Changes the results in each mapped memory. No work may be running: the device would see the change. */
static void misread(void) {
    static struct { uint64_t memory; uint32_t words[SEARCHED]; } before[64];
    static unsigned long waits;
    int spoils = left_out(&waits);
    if (last_queue) ((Result(*)(Handle))below(last_queue, "vkQueueWaitIdle"))(last_queue);
    for (unsigned i = 0; i < mapped_count && i < sizeof before / sizeof *before; i++) {
        uint64_t count = mapped[i].size / 4 < SEARCHED ? mapped[i].size / 4 : SEARCHED;
        int has_earlier = before[i].memory == mapped[i].memory;
        uint32_t *words = mapped[i].pointer;
        if (!words) continue;
        before[i].memory = mapped[i].memory;
        for (uint64_t at = 0; at + GROUP <= count; at += GROUP) {
            uint32_t *earlier = before[i].words + at, *group = words + at;
            int stale = has_earlier && spoils && is("stale-words") && are_results(earlier) && are_results(group);
            if (stale) memcpy(group, earlier, GROUP * sizeof *group);
            else memcpy(earlier, group, GROUP * sizeof *group);
            if (!spoils || !are_results(group)) continue;
            if (is("flipped-bits")) *group ^= 1;
            if (is("swapped-words")) exchange(group, count - at);
        }
    }
}
