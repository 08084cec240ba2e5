/* Copies of the contents of resources, and the case files that hold them. */

enum { MAX_READBACK_BYTES = 1 << 28, MAX_IMAGE_BYTES = 1 << 24 };

/* Host memory with a copy. */
typedef struct Readback {
    char table[96]; /* The header of its table in case.toml. */
    char *lines;
    uint64_t buffer, memory, size;
    void *pointer;
    int32_t format; /* Format of an image; 0 for a buffer. */
    uint64_t pointed, address; /* The id and the address of a buffer that a case has only if its memory has an address of it. */
    unsigned distance;         /* The number of addresses from a descriptor to it. */
    struct Readback *next;
} Readback;

/* A dispatch whose case is written once its submission has ended. */
typedef struct Capture {
    const Pipeline *pipeline;
    uint64_t kind, number;
    unsigned variant;
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

static uint64_t hash_contents(const Readback *readback) {
    return hash_bytes(0xcbf29ce484222325 + (uint64_t)readback->format, readback->pointer, readback->size);
}

/* Writes the contents of a copy to a file whose name is the hash of what it holds. Returns false if that failed. The recorder compresses
 * the file, and `name` is the one that it has then. */
static bool write_contents(const char *kind_folder, const Readback *readback, char name[40]) {
    char *texels = NULL, path[4096];
    size_t size = readback->size;
    if (readback->format) {
        FILE *memory = open_memstream(&texels, &size);
        if (!memory) return false;
        write_texels(memory, readback->format, readback->pointer, readback->size);
        bool is_converted = !ferror(memory);
        if (fclose(memory) != 0 || !is_converted) {
            free(texels);
            return false;
        }
    }
    const void *contents = texels ? (const void *)texels : readback->pointer;
    uint64_t hash = hash_bytes(0xcbf29ce484222325, contents, size);
    snprintf(name, 40, "%016" PRIx64 ".z", hash);
    snprintf(path, sizeof path, "%s/%016" PRIx64 ".bin", kind_folder, hash);
    bool is_written = access(path, F_OK) == 0;
    FILE *file = is_written ? NULL : fopen(path, "wb");
    if (file) {
        is_written = fwrite(contents, 1, size, file) == size;
        is_written = fclose(file) == 0 && is_written;
        if (!is_written) unlink(path);
    }
    free(texels);
    return is_written;
}

/* Kinds of dispatches. Variants of a kind have equal push constants and sizes of resources. */

/* A variant whose contents differ each time is given up after some copies. */
enum { MAX_VARIANTS = 16, MAX_CAPTURES = 64, MAX_DISCARDED = 4 };
typedef struct Variant {
    uint64_t hash;
    unsigned long captured, written, discarded; /* Dispatches with copies, cases, and copies that are no case. */
} Variant;
typedef struct DispatchKind {
    uint64_t hash, last_number; /* The number of the last copy. */
    Variant variants[MAX_VARIANTS];
    unsigned variant_count;
    uint64_t (*cases)[2]; /* The hash of each written case, and its number. */
    size_t case_count;
} DispatchKind;
static DispatchKind *dispatch_kinds;
static uint64_t dispatch_kind_count;

/* Returns the number of a written case with equal inputs, or 0. */
static uint64_t find_equal_case(const DispatchKind *kind, uint64_t hash) {
    for (size_t i = 0; i < kind->case_count; i++)
        if (kind->cases[i][0] == hash) return kind->cases[i][1];
    return 0;
}

/* Returns the name of the buffer of a table as a place of addresses, or false for images and elements of arrays. */
static bool place_of_table(const char *table, char place[64]) {
    int length = 0;
    if (sscanf(table, "[%*[a-z].\"%63[^\"]\"]%n", place, &length) != 1 || strncmp(table, "[image", 6) == 0) return false;
    return !strchr(place, '[');
}

/* Adds a place in memory with an address of a pointed buffer. */
static void add_pointer(Readback *pointed, const char *place, uint64_t offset, uint64_t address) {
    Text lines = { pointed->lines, pointed->lines ? strlen(pointed->lines) : 0, 0 };
    if (!lines.length) {
        snprintf(pointed->table, sizeof pointed->table, "[address.\"buffer%" PRIu64 "\"]", pointed->pointed);
        append(&lines, "pointers = [\n");
    } else lines.length -= 2; /* The end of the list. */
    lines.capacity = lines.length + 1;
    append(&lines, "    { at = \"%s@%" PRIu64 "\", offset = %" PRIu64 " },\n]\n", place, offset, address - pointed->address);
    pointed->lines = lines.data;
}

/* Finds the buffers that memory of the case has an address of, and names them: first by the descriptors, then by each other. */
static void find_pointed_buffers(const Capture *capture) {
    unsigned is_found = 0;
    for (const Readback *one = capture->readbacks; one; one = one->next) is_found |= one->pointed != 0;
    for (unsigned distance = 0; is_found; distance++) {
        is_found = 0;
        for (const Readback *holder = capture->readbacks; holder; holder = holder->next) {
            char place[64];
            bool is_new = holder->pointed ? holder->lines && holder->distance == distance : distance == 0;
            if (!holder->buffer || holder->format || !is_new || !place_of_table(holder->table, place)) continue;
            for (uint64_t at = 0, word; at + sizeof word <= holder->size; at += sizeof word) {
                memcpy(&word, (const char *)holder->pointer + at, sizeof word);
                for (Readback *one = word ? capture->readbacks : NULL; one; one = one->next) {
                    if (!one->pointed || word < one->address || word - one->address >= one->size) continue;
                    if (!one->lines) one->distance = distance + 1, is_found = 1;
                    add_pointer(one, place, at, word);
                    break;
                }
            }
        }
    }
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
    const Robustness *robust = &capture->pipeline->robustness;
    if (robust->storage || robust->uniform || robust->images)
        append(&text, "robustness = { storage = %u, uniform = %u, images = %s }\n", robust->storage, robust->uniform, robust->images ? "true" : "false");
    append(&text, "spec = {%s }\npush = [%s ]\n", capture->pipeline->constants, capture->push.data ? capture->push.data : "");
    DispatchKind *kind = &dispatch_kinds[capture->kind];
    Variant *variant = &kind->variants[capture->variant];
    uint64_t hash = hash_bytes(0xcbf29ce484222325, text.data, text.length), equal;
    find_pointed_buffers(capture);
    for (const Readback *readback = capture->readbacks; readback; readback = readback->next) {
        if (readback->pointed && !readback->lines) continue;
        uint64_t contents = readback->buffer ? hash_contents(readback) : 0;
        hash = hash_bytes(hash_bytes(hash, readback->table, strlen(readback->table)), &contents, sizeof contents);
        if (readback->lines) hash = hash_bytes(hash, readback->lines, strlen(readback->lines));
    }
    equal = find_equal_case(kind, hash);
    bool is_wanted = !equal && variant->written < kept_per_kind, is_whole = is_wanted;
    for (const Readback *readback = capture->readbacks; readback && is_whole; readback = readback->next) {
        if (readback->pointed && !readback->lines) continue;
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
    if (is_written) {
        variant->written++;
        kind->cases = realloc(kind->cases, (kind->case_count + 1) * sizeof *kind->cases);
        if (!kind->cases) abort();
        kind->cases[kind->case_count][0] = hash;
        kind->cases[kind->case_count++][1] = capture->number;
    } else if (!equal) {
        variant->discarded++;
    }
    Text line = { 0 };
    append(&line, "{\"event\":\"case\",\"kind\":%" PRIu64 ",\"case\":%" PRIu64 ",\"equal\":%" PRIu64 ",\"is_written\":%s,\"is_wanted\":%s,\"digest\":\"%016" PRIx64 "\",\"pointed\":[",
           capture->kind, capture->number, equal, is_written ? "true" : "false", is_wanted ? "true" : "false",
           hash_bytes(0xcbf29ce484222325, text.data, text.length));
    for (const Readback *readback = capture->readbacks; readback; readback = readback->next)
        if (readback->pointed && readback->lines)
            append(&line, "%s{\"is_pointed\":true,\"reads\":%" PRIu64 ",\"may_write\":true,\"buffer\":%" PRIu64 ",\"size\":%" PRIu64 "}",
                   line.data[line.length - 1] == '[' ? "" : ",", (uint64_t)1 << 33, readback->pointed, readback->size);
    append(&line, "]}");
    write_line(&line);
    free(text.data);
}
