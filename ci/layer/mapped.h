/* Faults of memory that the program can read: part of fault.c. */

static struct { uint64_t memory, size; void *pointer, *copy; } mapped[4096];
static unsigned mapped_count;
/* Guards the list while a thread of the layer uses it. */
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;

/* Writes the device's words to the copies that the program has mapped. */
static void update_mapped_copies(void) {
    for (unsigned i = 0; i < mapped_count; i++)
        if (mapped[i].copy) memcpy(mapped[i].copy, mapped[i].pointer, mapped[i].size);
}

static void overwrite_mapped_memory(uint32_t value) {
    for (unsigned i = 0; i < mapped_count; i++)
        if (mapped[i].pointer)
            for (uint64_t at = 0; at + 4 <= mapped[i].size; at += 4)
                *(uint32_t *)((char *)mapped[i].pointer + at) = value;
}

/* Number of words that are changed together, number of words per memory that are searched for results, and limit of the
 * distance of exchanged words. */
enum { GROUP_WORDS = 4, MAX_SEARCHED_WORDS = 1 << 20, MAX_DISTANCE = 4096 };

/* Returns true for small numbers that are not all zero. Results of tests have this form; other words of the program do not. */
static int look_like_results(const uint32_t *words) {
    int is_any_set = 0;
    for (int word = 0; word < GROUP_WORDS; word++) {
        if (words[word] > 2) return 0;
        is_any_set |= words[word] > 0;
    }
    return is_any_set;
}

/* Exchanges the first of `count` words with the next different result. */
static void exchange_with_different_result(uint32_t *words, uint64_t count) {
    for (uint64_t word = 1; word < count && word < MAX_DISTANCE && words[word] <= 2; word++)
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
static void corrupt_results(void) {
    static struct { uint64_t memory; uint32_t words[MAX_SEARCHED_WORDS]; } earlier_results[64];
    static unsigned long waits, next_slot;
    int corrupts = is_nth(&waits), is_stale_fault = is_fault("stale-words"), is_bit_fault = is_fault("flipped-bits");
    int is_swap_fault = is_fault("swapped-words");
    if (last_queue) ((Result(*)(Handle))next_function(last_queue, "vkQueueWaitIdle"))(last_queue);
    enum { SLOTS = sizeof earlier_results / sizeof *earlier_results };
    for (unsigned i = 0; i < mapped_count; i++) {
        if (!mapped[i].pointer) continue;
        unsigned slot = 0;
        while (slot < SLOTS && earlier_results[slot].memory != mapped[i].memory) slot++;
        int has_earlier = slot < SLOTS;
        if (!has_earlier) slot = next_slot++ % SLOTS;
        uint64_t count = mapped[i].size / 4 < MAX_SEARCHED_WORDS ? mapped[i].size / 4 : MAX_SEARCHED_WORDS;
        uint32_t *words = mapped[i].pointer;
        earlier_results[slot].memory = mapped[i].memory;
        for (uint64_t at = 0; at + GROUP_WORDS <= count; at += GROUP_WORDS) {
            uint32_t *earlier = earlier_results[slot].words + at, *group = words + at;
            int is_stale = has_earlier && corrupts && is_stale_fault && look_like_results(earlier) && look_like_results(group);
            if (is_stale) memcpy(group, earlier, GROUP_WORDS * sizeof *group);
            else if (is_stale_fault) memcpy(earlier, group, GROUP_WORDS * sizeof *group);
            if (!corrupts || !look_like_results(group)) continue;
            if (is_bit_fault) *group ^= 1;
            if (is_swap_fault) exchange_with_different_result(group, count - at);
        }
    }
}

/* Bytes of a page, and the position of the changed word in a page. */
enum { PAGE_BYTES = 4096, CHANGED_BYTE = 128 };

/* Changes of a word at a byte position. */
typedef uint32_t ChangedWord(uint32_t word, uint64_t at);
static uint32_t inverted_small_word(uint32_t word, uint64_t at) {
    (void)at;
    return word <= 1 ? !word : word;
}
static uint32_t inverted_bit(uint32_t word, uint64_t at) {
    return at == 3 * PAGE_BYTES + CHANGED_BYTE ? word ^ 1 : word;
}
static uint32_t set_bit(uint32_t word, uint64_t at) {
    return at % PAGE_BYTES == CHANGED_BYTE ? word | 1 : word;
}

static uint32_t doubled_small_word(uint32_t word, uint64_t at) {
    (void)at;
    return word == 1 || word == 2 ? 2 * word : word;
}
static uint32_t rarely_inverted_small_word(uint32_t word, uint64_t at) {
    static atomic_uint state = 1;
    state = state * 1664525u + 1013904223u + (uint32_t)at;
    return word <= 2 && state >> 26 == 0 ? word ^ 1 : word;
}

static ChangedWord *selected_change(void) {
    if (is_fault("doubled-words")) return doubled_small_word;
    if (is_fault("rare-bits")) return rarely_inverted_small_word;
    if (is_fault("late-bit")) return inverted_bit;
    if (is_fault("stuck-bit") || is_fault("early-bit")) return set_bit;
    return inverted_small_word;
}

/* Restores the small words of each mapped memory that an earlier call saw, if `restores`. */
static void drop_small_writes(int restores) {
    static struct { uint64_t memory; uint32_t words[MAX_SEARCHED_WORDS]; } earlier[16];
    pthread_mutex_lock(&mapped_lock);
    for (unsigned i = 0, slot = 0; i < mapped_count && slot < sizeof earlier / sizeof *earlier; i++) {
        uint32_t *words = mapped[i].pointer;
        if (!words) continue;
        uint64_t count = mapped[i].size / 4 < MAX_SEARCHED_WORDS ? mapped[i].size / 4 : MAX_SEARCHED_WORDS;
        uint32_t *before = earlier[slot].words;
        for (uint64_t at = 0; restores && earlier[slot].memory == mapped[i].memory && at < count; at++)
            if (words[at] <= 2 && before[at] <= 2) words[at] = before[at];
        earlier[slot++].memory = mapped[i].memory;
        memcpy(before, words, 4 * count);
    }
    pthread_mutex_unlock(&mapped_lock);
}

/* Changes all mapped memory, according to the fault. */
static void change_mapped_memory(int changes) {
    ChangedWord *change = selected_change();
    pthread_mutex_lock(&mapped_lock);
    for (unsigned i = 0; changes && i < mapped_count; i++) {
        uint32_t *words = mapped[i].pointer;
        uint64_t count = mapped[i].size / 4 < MAX_SEARCHED_WORDS ? mapped[i].size / 4 : MAX_SEARCHED_WORDS;
        for (uint64_t word = 0; words && word < count; word++) {
            uint32_t changed = change(words[word], 4 * word);
            if (changed != words[word]) words[word] = changed;
        }
    }
    pthread_mutex_unlock(&mapped_lock);
}

static atomic_flag is_changing = ATOMIC_FLAG_INIT;

static void *change_after_delay(void *unused) {
    (void)unused;
    usleep(is_fault("late-words") || is_fault("late-bit") ? 2000 : 300);
    change_mapped_memory(1);
    atomic_flag_clear(&is_changing);
    return NULL;
}

/* Changes all mapped memory in another thread after a short time, unless such a thread runs already. */
static void change_later(int changes) {
    pthread_t thread;
    if (!changes || atomic_flag_test_and_set(&is_changing)) return;
    if (pthread_create(&thread, NULL, change_after_delay, NULL) == 0) pthread_detach(thread);
}
