/* Faults of shader modules: part of fault.c. */

typedef struct ModuleInfo {
    int32_t type;
    const void *next;
    uint32_t flags;
    size_t bytes;
    const uint32_t *words;
} ModuleInfo;

enum { SPIRV_HEADER = 5, OP_EXECUTION_MODE = 16, MODE_LOCAL_SIZE = 17, OP_DECORATE = 71, BUILT_IN = 11 };

/* Returns the workgroup size of a module in x, or NULL. */
static uint32_t *find_local_size(uint32_t *words, size_t count) {
    for (size_t at = SPIRV_HEADER; at < count && words[at] >> 16; at += words[at] >> 16)
        if ((words[at] & 0xffff) == OP_EXECUTION_MODE && at + 3 < count && words[at + 2] == MODE_LOCAL_SIZE)
            return words + at + 3;
    return NULL;
}

enum { OP_IADD = 128, OP_ATOMIC_IADD = 234, OP_BRANCH_CONDITIONAL = 250 };

static void swap_words(uint32_t *words) {
    uint32_t first = words[0];
    words[0] = words[1];
    words[1] = first;
}

/* Adds the operand of each atomic addition to its result. `words` has space for twice the words. */
static size_t return_new_values(uint32_t *words, const uint32_t *given, size_t count) {
    size_t to = SPIRV_HEADER;
    for (size_t at = SPIRV_HEADER; at < count && given[at] >> 16; at += given[at] >> 16) {
        memcpy(words + to, given + at, (given[at] >> 16) * sizeof *words);
        uint32_t *atomic = words + to;
        to += given[at] >> 16;
        if ((given[at] & 0xffff) != OP_ATOMIC_IADD) continue;
        uint32_t added[] = {5 << 16 | OP_IADD, atomic[1], atomic[2], words[3], atomic[6]};
        atomic[2] = words[3]++;
        memcpy(words + to, added, sizeof added);
        to += 5;
    }
    return to;
}

static Result layer_vkCreateShaderModule(Handle handle, const ModuleInfo *info, const void *allocator, uint64_t *created) {
    static unsigned long modules;
    Result result = inject_call_fault("vkCreateShaderModule");
    if (result) return result;
    Result (*create)(Handle, const ModuleInfo *, const void *, uint64_t *) =
        (Result(*)(Handle, const ModuleInfo *, const void *, uint64_t *))next_function(handle, "vkCreateShaderModule");
    uint32_t *words = malloc(2 * info->bytes);
    if (!words) return OUT_OF_HOST_MEMORY;
    memcpy(words, info->words, info->bytes);
    size_t count = info->bytes / 4;
    if (is_fault("new-values")) count = return_new_values(words, info->words, count);
    uint32_t *size = find_local_size(words, count);
    if (size && is_fault("larger-local") && is_nth(&modules)) *size += 1;
    if (size && is_fault("double-local") && is_nth(&modules)) *size *= 2;
    if (size && is_fault("smaller-local") && *size > 1 && is_nth(&modules)) *size /= 2;
    /* The numbers of `A-B`. */
    const char *dash = strchr(fault_argument(), '-');
    uint32_t from = dash ? fault_number() : 0, to = dash ? strtoul(dash + 1, NULL, 10) : 0;
    for (size_t at = SPIRV_HEADER; at < count && words[at] >> 16; at += words[at] >> 16) {
        uint32_t opcode = words[at] & 0xffff;
        if (is_fault("opcode") && opcode == from) words[at] += to - from;
        if (is_fault("swapped-branch") && opcode == OP_BRANCH_CONDITIONAL) swap_words(words + at + 2);
        if (is_fault("builtin") && opcode == OP_DECORATE && words[at + 2] == BUILT_IN && words[at + 3] == from) words[at + 3] = to;
    }
    ModuleInfo changed = *info;
    changed.words = words;
    changed.bytes = 4 * count;
    static ModuleInfo earlier;
    int is_stale = is_fault("earlier-module") && is_nth(&modules) && earlier.words;
    result = create(handle, is_stale ? &earlier : &changed, allocator, created);
    if (!is_fault("earlier-module")) free(words);
    else if (!is_stale) earlier = changed;
    return result;
}
