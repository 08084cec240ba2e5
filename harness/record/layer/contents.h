/* Copies of the contents of resources, and the case files that hold them. */

enum { MAX_READBACK_BYTES = 1 << 28, MAX_IMAGE_BYTES = 1 << 24 };

/* Host memory with a copy. */
typedef struct Readback {
    char table[96]; /* The header of its table in case.toml. */
    char *lines;
    uint64_t buffer, memory, size;
    void *pointer;
    int32_t format; /* Format of an image; 0 for a buffer. */
    struct Readback *next;
} Readback;

/* A dispatch whose case is written once its submission has ended. */
typedef struct Capture {
    const Pipeline *pipeline;
    uint64_t kind, number;
    uint32_t grid[3];
    Readback *indirect, *readbacks;
    Text notes, push;
    bool is_written;
    struct Capture *next;
} Capture;

static void free_readbacks(Handle device, Readback *readback) {
    while (readback) {
        Readback *next = readback->next;
        if (readback->buffer) CALL_NEXT(device, void, vkDestroyBuffer, (Handle, uint64_t, const void *))(device, readback->buffer, NULL);
        if (readback->memory) CALL_NEXT(device, void, vkFreeMemory, (Handle, uint64_t, const void *))(device, readback->memory, NULL);
        free(readback->lines);
        free(readback);
        readback = next;
    }
}

/* Returns NULL if memory or the limit of recorded bytes is exhausted. */
static Readback *create_readback(Handle device, uint64_t size) {
    enum { VISIBLE_AND_COHERENT = 6 };
    if (size > MAX_READBACK_BYTES || content_bytes + size > content_limit) return NULL;
    Readback *readback = allocate(sizeof *readback);
    readback->size = size;
    BufferInfo info = { 12, NULL, 0, size ? (size + 3) / 4 * 4 : 4, 2, 0, 0, NULL };
    if (CALL_NEXT(device, Result, vkCreateBuffer, (Handle, const BufferInfo *, const void *, uint64_t *))(device, &info, NULL, &readback->buffer)) {
        free(readback);
        return NULL;
    }
    MemoryRequirements needed;
    CALL_NEXT(device, void, vkGetBufferMemoryRequirements, (Handle, uint64_t, MemoryRequirements *))(device, readback->buffer, &needed);
    MemoryProperties types = { 0 };
    const DeviceState *state = device_state(device);
    state->instance->get_memory_properties(state->physical, &types);
    for (uint32_t i = 0; i < types.count; i++) {
        if (!(needed.types >> i & 1) || (types.types[i].flags & VISIBLE_AND_COHERENT) != VISIBLE_AND_COHERENT) continue;
        MemoryAllocateInfo wanted = { 5, NULL, needed.size, i };
        if (CALL_NEXT(device, Result, vkAllocateMemory, (Handle, const MemoryAllocateInfo *, const void *, uint64_t *))(
                device, &wanted, NULL, &readback->memory))
            continue;
        if (CALL_NEXT(device, Result, vkBindBufferMemory, (Handle, uint64_t, uint64_t, uint64_t))(
                device, readback->buffer, readback->memory, 0) == SUCCESS
            && CALL_NEXT(device, Result, vkMapMemory, (Handle, uint64_t, uint64_t, uint64_t, uint32_t, void **))(
                   device, readback->memory, 0, WHOLE_SIZE, 0, &readback->pointer) == SUCCESS) {
            content_bytes += size;
            return readback;
        }
        break;
    }
    free_readbacks(device, readback);
    return NULL;
}

static void free_captures(Handle device, Capture *capture) {
    while (capture) {
        Capture *next = capture->next;
        free_readbacks(device, capture->readbacks);
        free_readbacks(device, capture->indirect);
        free(capture->notes.data);
        free(capture->push.data);
        free(capture);
        capture = next;
    }
}

/* Writes the contents of a copy to a file named by their hash. Returns false if that failed. */
static bool write_contents(const char *kind_folder, const Readback *readback, char name[40]) {
    uint64_t hash = hash_bytes(0xcbf29ce484222325 + (uint64_t)readback->format, readback->pointer, readback->size);
    snprintf(name, 40, "%016" PRIx64 ".bin", hash);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", kind_folder, name);
    if (access(path, F_OK) == 0) return true;
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    if (readback->format) write_texels(file, readback->format, readback->pointer, readback->size);
    else fwrite(readback->pointer, 1, readback->size, file);
    bool is_written = !ferror(file);
    is_written = fclose(file) == 0 && is_written;
    if (!is_written) unlink(path);
    return is_written;
}

static void write_case(Capture *capture) {
    if (capture->is_written || !open_journal()) return;
    capture->is_written = true;
    char kind_folder[3200], path[4096], part[4096];
    snprintf(kind_folder, sizeof kind_folder, "%s/kinds/%" PRIu64, folder, capture->kind);
    snprintf(path, sizeof path, "%s/case-%" PRIu64 ".toml", kind_folder, capture->number);
    snprintf(part, sizeof part, "%s/case.part", kind_folder);
    uint32_t grid[3];
    memcpy(grid, capture->indirect ? capture->indirect->pointer : capture->grid, sizeof grid);
    Text text = { 0 };
    append(&text, "%smodule = \"module.spv\"\nentry = ", capture->notes.data ? capture->notes.data : "");
    append_string(&text, capture->pipeline->entry);
    append(&text, "\ngrid = [%u, %u, %u]\n", grid[0], grid[1], grid[2]);
    if (capture->pipeline->subgroup_size) append(&text, "subgroup_size = %u\n", capture->pipeline->subgroup_size);
    append(&text, "spec = {%s }\npush = [%s ]\n", capture->pipeline->constants, capture->push.data ? capture->push.data : "");
    bool is_whole = true;
    for (const Readback *readback = capture->readbacks; readback && is_whole; readback = readback->next) {
        append(&text, "%s\n%s", readback->table, readback->lines ? readback->lines : "");
        if (!readback->buffer) continue;
        char name[40];
        is_whole = write_contents(kind_folder, readback, name);
        append(&text, "file = \"%s\"\n", name);
    }
    FILE *file = is_whole ? fopen(part, "w") : NULL;
    if (file) {
        is_whole = fwrite(text.data, 1, text.length, file) == text.length;
        is_whole = fclose(file) == 0 && is_whole;
    }
    /* A case that is there is whole. */
    bool is_written = file && is_whole && rename(part, path) == 0;
    WRITE_EVENT("{\"event\":\"case\",\"kind\":%" PRIu64 ",\"case\":%" PRIu64 ",\"written\":%s,\"grid\":[%u,%u,%u]}", capture->kind,
                capture->number, is_written ? "true" : "false", grid[0], grid[1], grid[2]);
    free(text.data);
}
