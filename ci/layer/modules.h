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

enum { OP_FUNCTION = 54, OP_TYPE_BOOL = 20, OP_CONSTANT = 43, OP_LOAD = 61, OP_SELECT = 169, OP_IEQUAL = 170, LOCAL_INDEX = 29 };

static void append(uint32_t *words, size_t *count, uint32_t opcode, uint32_t operand_count, const uint32_t *operands) {
    words[(*count)++] = (operand_count + 1) << 16 | opcode;
    memcpy(words + *count, operands, operand_count * sizeof *words);
    *count += operand_count;
}

#define APPEND(opcode, ...) \
    append(words, &to, opcode, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

/* Adds the operand of each atomic addition of 32 bits to its result, for one index in the workgroup if `lane` is given.
 * `words` has space for four times the words. */
static size_t return_new_values(uint32_t *words, const uint32_t *given, size_t count, const uint32_t *lane) {
    size_t to = SPIRV_HEADER;
    uint32_t index = 0, boolean = 0, constants = 0;
    for (size_t at = SPIRV_HEADER; at < count && given[at] >> 16; at += given[at] >> 16) {
        const uint32_t *one = given + at;
        uint32_t opcode = *one & 0xffff;
        if (opcode == OP_DECORATE && one[2] == BUILT_IN && one[3] == LOCAL_INDEX) index = one[1];
        if (opcode == OP_TYPE_BOOL) boolean = one[1];
        memcpy(words + to, one, (*one >> 16) * sizeof *words);
        uint32_t *atomic = words + to;
        to += *one >> 16;
        if (opcode != OP_ATOMIC_IADD || (lane && !(index && boolean))) continue;
        uint32_t type = one[1], result = one[2], old = words[3]++, added = one[6];
        atomic[2] = old;
        if (lane) {
            /* The constants are declared below, before the functions. */
            if (!constants) constants = words[3], words[3] += 2;
            uint32_t loaded = words[3]++, is_lane = words[3]++;
            APPEND(OP_LOAD, type, loaded, index);
            APPEND(OP_IEQUAL, boolean, is_lane, loaded, constants);
            APPEND(OP_SELECT, type, added = words[3]++, is_lane, one[6], constants + 1);
        }
        APPEND(OP_IADD, type, result, old, added);
    }
    if (!constants) return to;
    size_t functions = SPIRV_HEADER, end = to;
    uint32_t type = 0;
    for (size_t at = SPIRV_HEADER; at < to; at += words[at] >> 16) {
        if ((words[at] & 0xffff) == OP_ATOMIC_IADD) type = words[at + 1];
        if ((words[at] & 0xffff) == OP_FUNCTION && functions == SPIRV_HEADER) functions = at;
    }
    APPEND(OP_CONSTANT, type, constants, *lane);
    APPEND(OP_CONSTANT, type, constants + 1, 0);
    uint32_t declared[8];
    memcpy(declared, words + end, sizeof declared);
    memmove(words + functions + 8, words + functions, (end - functions) * sizeof *words);
    memcpy(words + functions, declared, sizeof declared);
    return to;
}

static Result layer_vkCreateShaderModule(Handle handle, const ModuleInfo *info, const void *allocator, uint64_t *created) {
    static unsigned long modules;
    Result result = inject_call_fault("vkCreateShaderModule");
    if (result) return result;
    Result (*create)(Handle, const ModuleInfo *, const void *, uint64_t *) =
        (Result(*)(Handle, const ModuleInfo *, const void *, uint64_t *))next_function(handle, "vkCreateShaderModule");
    uint32_t *words = malloc(4 * info->bytes);
    if (!words) return OUT_OF_HOST_MEMORY;
    memcpy(words, info->words, info->bytes);
    size_t count = info->bytes / 4;
    uint32_t lane = fault_number();
    if (is_fault("new-values")) count = return_new_values(words, info->words, count, NULL);
    if (is_fault("lane-new-values")) count = return_new_values(words, info->words, count, &lane);
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
